// Package search plans a whole list at once instead of job by job, and proves what no plan can
// beat.
package search
