package slurmctl

import (
	"bytes"
	"fmt"
)

// Has reports whether a node with this layout has what a job asks for. Slurm compares in the same way.
func (l Layout) Has(least Layout) bool {
	return l.Sockets >= least.Sockets && l.Cores >= least.Cores && l.Threads >= least.Threads
}

// readLayout reads "2:8:1"; a star stands for what a job does not ask for.
func readLayout(b []byte) (l Layout, err error) {
	if string(b) == "*:*:*" {
		return l, nil
	}
	parts := bytes.Split(b, []byte(":"))
	if len(parts) != 3 {
		return l, fmt.Errorf("sockets, cores, and threads %q are not understood", oneLine(string(b), 40))
	}
	for i, to := range []*uint16{&l.Sockets, &l.Cores, &l.Threads} {
		*to = uint16(perhaps(string(parts[i])))
	}
	return l, nil
}
