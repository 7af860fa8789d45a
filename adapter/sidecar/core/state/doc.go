// Package state holds what the core knows, with the verbs that change it, and tasks without an outcome. It
// decides nothing.
package state
