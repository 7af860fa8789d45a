package main

import (
	"errors"
	"io/fs"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// Exit statuses, as in sysexits.h. systemd does not start the sidecar again after exitUsage, exitDenied, and exitConfig.
const (
	exitOther    = 1
	exitUsage    = 64 // the command line
	exitListen   = 69 // an address to listen on
	exitDatabase = 74
	exitDenied   = 77 // a file that may not be read or written
	exitConfig   = 78 // the configuration, or a database that must not be used
)

// failure is an error with the status that it ends the sidecar with, unless its cause says more.
type failure struct {
	status int
	error
}

func (f failure) Unwrap() error { return f.error }

// exitStatus returns the status for an error.
func exitStatus(err error) int {
	var outer, f failure
	if !errors.As(err, &outer) {
		return exitUsage // it did not run
	}
	switch {
	case errors.Is(err, store.ErrUnfit):
		return exitConfig
	case errors.Is(err, fs.ErrPermission):
		return exitDenied
	case errors.As(outer.error, &f):
		return f.status
	}
	return exitOther
}
