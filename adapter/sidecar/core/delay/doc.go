// Package delay bounds and counts what holds cost stock jobs: a growth's promise lapses before it keeps nodes from a
// job for longer than the site allows.
package delay
