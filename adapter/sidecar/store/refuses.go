package store

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// Refuses reports whether an error means that the database cannot be written (or even read) now but
// may work later: a full or read-only disk, an input/output error, a lock that another process
// holds.
func Refuses(err error) bool {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case sqlite3.ErrFull, sqlite3.ErrReadonly, sqlite3.ErrIoErr, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrCantOpen, sqlite3.ErrPerm, sqlite3.ErrNomem:
		return true
	}
	return false
}

// Malformed reports whether an error means that the file is not a sound database: some or all of
// its pages were overwritten.
func Malformed(err error) bool {
	var e sqlite3.Error
	return errors.Is(err, ErrMalformed) || errors.As(err, &e) && (e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}
