// Package exact computes sums of times and of node-seconds without silent overflow.
package exact
