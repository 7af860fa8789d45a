// Package lend gives malleable jobs nodes beyond their plans for a time, and makes offers to their applications.
package lend
