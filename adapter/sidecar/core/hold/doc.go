// Package hold keeps nodes of coming steps free by reservations, within shares, counts what that costs, and switches
// nodes on.
package hold
