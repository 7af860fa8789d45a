package place

import (
	"fmt"
	"math"
	"slices"
)

// File is an input file of a job.
type File struct {
	Name string
	Size int64    // bytes
	On   []string // clusters that have it
}

// Move is the transfer of a file to a cluster.
type Move struct {
	File string
	From string // cluster
	Size int64  // bytes
}

// MostTransfer bounds the time of a job's transfers, in seconds: 30 days.
const MostTransfer = 30 * 24 * 3600

// Staging returns which files must be moved to a cluster, and how many seconds that takes: each from the cluster with
// the most bandwidth to it, one after the other. rate returns the bytes a second from one cluster to another, 0 if there is
// no way. It takes O(files × replicas).
func Staging(files []File, to string, rate func(from, to string) float64) (moves []Move, seconds int64, err error) {
	all := 0.
	for _, f := range files {
		if slices.Contains(f.On, to) {
			continue
		}
		best, from := 0., ""
		for _, name := range f.On {
			if r := rate(name, to); r > best {
				best, from = r, name
			}
		}
		if best == 0 {
			return nil, 0, fmt.Errorf("no bandwidth to it is known from a cluster that has %q (%q)", f.Name, f.On)
		}
		all += float64(f.Size) / best
		moves = append(moves, Move{f.Name, from, f.Size})
	}
	if !(all <= MostTransfer) {
		return nil, 0, fmt.Errorf("the transfer of its input files takes more than %d days", MostTransfer/86400)
	}
	return moves, int64(math.Ceil(all)), nil
}
