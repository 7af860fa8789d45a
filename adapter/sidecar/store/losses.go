package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// lossesText returns the losses of a job as a row has them: "2:n[3-4] 3:n5".
func lossesText(losses []row.Loss) string {
	words := make([]string, len(losses))
	for i, l := range losses {
		words[i] = strconv.Itoa(l.Step) + ":" + slurmctl.CompressNodes(l.Nodes)
	}
	return strings.Join(words, " ")
}

func parseLosses(text string) (losses []row.Loss, err error) {
	for _, word := range strings.Fields(text) {
		step, list, _ := strings.Cut(word, ":")
		n, err := strconv.Atoi(step)
		if err != nil {
			return nil, fmt.Errorf("losses %q: %w", text, err)
		}
		nodes, err := slurmctl.ExpandNodes(list)
		if err != nil {
			return nil, fmt.Errorf("losses %q: %w", text, err)
		}
		losses = append(losses, row.Loss{Step: n, Nodes: nodes})
	}
	return losses, nil
}
