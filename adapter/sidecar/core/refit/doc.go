// Package refit finds out what is taken, by whom and until when, and refits the plans of running jobs around it.
package refit
