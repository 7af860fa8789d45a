//go:build !crashtest

package store

// driver is the database driver's name.
const driver = "sqlite3"
