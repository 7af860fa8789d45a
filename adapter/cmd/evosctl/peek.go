package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

const peekHelp = `Print the plan of the next step, and demands for nodes, without ending the current step:

  eval "$(evosctl peek)"
  [ -n "$EVO_NEXT_LEAVING" ] && ./leave "$EVO_NEXT_LEAVING"

Set after the eval: EVO_NEXT_STEP (from 1), EVO_NEXT_NODES (the number of nodes),
EVO_NEXT_AT (the planned time, in Unix seconds), EVO_NEXT_ARRIVING and EVO_NEXT_LEAVING
(nodes, as n[1-5]). All are empty in the last step.

The plan may change: a step that ends earlier or later than planned may bring other nodes,
and evosctl next --release names other nodes to leave. EVO_NEXT_AT is empty while the step
has no plan: after a step that exceeded its time, evosctl next makes the plan.

If a malleable job must give nodes back (evosctl wait-event), EVO_DEMAND is the number of that
demand, EVO_DEMAND_LEAVING the nodes that go, and EVO_DEMAND_AT the deadline in Unix seconds.
Without a demand, all are empty.

EVO_LOST lists nodes that the job lost since the last evosctl next, because a node failed.`

// encodeComing writes the next step with any demand and lost nodes, or null if there is none of these.
func encodeComing(out io.Writer, a api.Allocation) error {
	if a.Coming == nil && a.Demand == nil && len(a.Lost) == 0 {
		return printJSON(out, nil)
	}
	return printJSON(out, struct {
		*api.Coming
		Demand *api.Demand `json:"demand,omitempty"`
		Lost   []string    `json:"lost,omitempty"`
	}{a.Coming, a.Demand, a.Lost})
}

func newPeek() *cobra.Command {
	var job jobFlag
	var out output
	cmd := &cobra.Command{
		Use:   "peek",
		Short: "Print the next step and the nodes that would go, without ending the step",
		Long:  peekHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := job.present(cmd)
			var e injob.Exports
			if err == nil {
				e, err = injob.ExportsOfComing(a)
			}
			switch {
			case err != nil:
			case out.json:
				err = encodeComing(os.Stdout, a)
			default:
				err = out.export(e)
			}
			if err != nil {
				return out.fail(err, 1, true)
			}
			return nil
		},
	}
	job.add(cmd)
	out.add(cmd)
	return cmd
}
