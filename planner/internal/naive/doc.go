// Package naive has what is plainly right, for tests to compare with, and runs them.
package naive
