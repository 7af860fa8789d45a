// Package bag simulates a bag of tasks that runs, best effort, on what local jobs leave of a
// cluster. A task takes one processor. When a local job starts there, the task is interrupted; with
// a checkpoint, it goes on later where it was.
//
// The local jobs are given, and no task changes their schedule: when one starts, its processors are
// gone for the tasks. The seconds that a task takes for its checkpoint then are the delay of the
// local job, and never more than the grace. The bag never runs empty.
//
// Times are whole seconds. Equal input gives equal output.
package bag
