// Package timeline is the resource EP (Klein and Pérez 2011, section 3.1): how many
// nodes are in use at every second, as a tree or, for a few hundred changes, as two
// flat arrays.
package timeline
