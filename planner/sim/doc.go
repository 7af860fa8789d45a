// Package sim runs experiments over the planner's core.
//
// # The paper's tables
//
// Paper repeats the evaluation of "Towards Scheduling Evolving Applications"
// (section 5): many random tests, every strategy on each, and the minimum,
// average and maximum of the paper's ten metrics (Tables 1 and 2). Where the text
// leaves a choice, the figures decide:
//
//   - The cluster's size is not told; 100 nodes gives the printed averages.
//   - "Waste" is relative to the area used, not to that of the cluster: rigid's
//     maximum of 116 % could not be otherwise. So is the waste per application
//     (rigid's maximum: 681 %).
//   - "Utilisation (relative)" is the area allocated, divided by rigid's.
//   - "App expansion" and "Per-app. waste" are taken over all applications of
//     all tests, expanded or not; everything else is one figure a test.
//
// Minima and maxima depend on the tests drawn, averages hardly do.
package sim
