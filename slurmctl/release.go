package slurmctl

import (
	"context"
	"fmt"
	"syscall"
)

// learnt holds the version of the commands, and the file of squeue that said so. Administrators
// upgrade Slurm below a running client. The file shows most upgrades, at the cost of one stat. It
// does not show those behind a wrapper script: see compare and distrust.
type learnt struct {
	version string
	release int // 22.05 is 2205
	file    fileID
	doubted bool // ask again
}

// fileID distinguishes a file from those that replace it. The zero value is no file.
type fileID struct {
	device, inode uint64
	changed       syscall.Timespec
}

// release returns the release of the commands as a number: 22.05 is 2205. It asks once for every
// file that is squeue.
func (c *Client) release(ctx context.Context) (int, error) {
	file := c.squeueFile() // before asking: a file that comes later is another one
	known := c.learnt.Load()
	if known != nil && known.file == file && !known.doubted {
		return known.release, nil
	}
	s, err := c.Version(ctx)
	if err != nil {
		return 0, err
	}
	release, err := parseRelease(s)
	if err != nil {
		return 0, fmt.Errorf("squeue --version: %w", err)
	}
	if c.learnt.CompareAndSwap(known, &learnt{s, release, file, false}) && known != nil && known.version != s && c.Renewed != nil {
		c.Renewed(known.version, s)
	}
	return release, nil
}

func (c *Client) squeueFile() fileID {
	var st syscall.Stat_t
	path, err := c.lookPath("squeue", c.environment(command{}))
	if err != nil || syscall.Stat(path, &st) != nil {
		return fileID{}
	}
	return fileID{st.Dev, st.Ino, st.Ctim}
}

// compare doubts the commands' version while slurmctld is of another release. Administrators upgrade
// slurmctld first, and then the commands.
func (c *Client) compare(slurmctld string) {
	known := c.learnt.Load()
	if release, err := parseRelease(slurmctld); known != nil && err == nil && release != known.release {
		c.distrust()
	}
}

// distrust makes the next query ask for the commands' version again.
func (c *Client) distrust() {
	if known := c.learnt.Load(); known != nil {
		again := *known
		again.doubted = true
		c.learnt.CompareAndSwap(known, &again)
	}
}
