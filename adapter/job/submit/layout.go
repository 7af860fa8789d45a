package submit

import (
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// layoutOptions lists the options for the sockets, the cores, and the threads that a job needs of its nodes.
var layoutOptions = []string{"sockets-per-node", "cores-per-socket", "threads-per-core"}

// layout returns the fewest sockets, cores, and threads of a node that the job asks for, and the options that say so.
// sbatch takes ranges; it rejects what is no number.
func (l layers) layout() (least slurmctl.Layout, given []getopt.Option) {
	all, has := l.last("extra-node-info")
	parts := append(strings.Split(all.Value, ":"), "", "")
	if has {
		given = append(given, all)
	}
	for i, to := range []*uint16{&least.Sockets, &least.Cores, &least.Threads} {
		text := parts[i]
		if o, has := l.last(layoutOptions[i]); has {
			text, given = o.Value, append(given, o)
		}
		low, _, _ := strings.Cut(strings.TrimSpace(text), "-")
		n, err := strconv.ParseUint(low, 10, 16)
		if err == nil {
			*to = uint16(n)
		}
	}
	return least, given
}
