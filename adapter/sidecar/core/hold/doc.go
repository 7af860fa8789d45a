// Package hold keeps nodes of coming steps free by reservations, within shares and the delay budget, counts what that
// costs others, and switches nodes on.
package hold
