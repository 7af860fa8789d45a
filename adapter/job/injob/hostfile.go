package injob

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Hostfile writes all nodes of an allocation, or those of a component, one per line: "plain" only the name, "mpich"
// name:slots, "openmpi" name slots=slots. Slots are the tasks that Slurm would place there, unless
// given (> 0).
func Hostfile(a api.Allocation, component, format string, slots int, getenv func(string) string) (string, error) {
	if err := check(a); err != nil {
		return "", err
	}
	a, err := presentOf(a, component)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range a.Parts {
		for i, node := range p.NodeList {
			n := slots
			if n <= 0 {
				n = slotsOf(p.CPUs[i], getenv)
			}
			switch format {
			case "plain":
				b.WriteString(node)
			case "mpich":
				fmt.Fprintf(&b, "%s:%d", node, n)
			case "openmpi":
				fmt.Fprintf(&b, "%s slots=%d", node, n)
			default:
				return "", fmt.Errorf("invalid host file format %q: want plain, mpich, or openmpi", format)
			}
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}
