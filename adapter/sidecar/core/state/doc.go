// Package state holds what the core knows, with the verbs that change it, tasks without an outcome, and the table
// of drive modes. It decides nothing.
package state
