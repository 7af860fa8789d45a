// Package exact is sums of times and of node-seconds that never overflow unseen.
package exact
