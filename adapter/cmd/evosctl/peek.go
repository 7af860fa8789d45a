package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

const peekHelp = `Print what the next step is planned to be, and what is demanded back, without ending the
present step:

  eval "$(evosctl peek)"
  [ -n "$EVO_NEXT_LEAVING" ] && ./leave "$EVO_NEXT_LEAVING"

Set after the eval: EVO_NEXT_STEP (from 1), EVO_NEXT_NODES (how many),
EVO_NEXT_AT (when it is planned, in Unix seconds), EVO_NEXT_ARRIVING and
EVO_NEXT_LEAVING (nodes, as n[1-5]). All are empty in the last step.

It is the plan of this moment: a step that ends earlier or later than planned may
bring other nodes, and evosctl next --release names others to leave. EVO_NEXT_AT is
empty while the step is not planned: after one that lasted longer than its profile
says, it is planned once evosctl next is called.

Of a malleable job that is to give nodes back (evosctl wait-event) EVO_DEMAND is the number of
that demand, EVO_DEMAND_LEAVING the nodes that go, and EVO_DEMAND_AT when they are taken at the
latest, in Unix seconds; all are empty where nothing is demanded.`

// encodeComing writes the next step with any demand, or null if there is neither.
func encodeComing(out io.Writer, a api.Allocation) error {
	if a.Coming == nil && a.Demand == nil {
		return printJSON(out, nil)
	}
	return printJSON(out, struct {
		*api.Coming
		Demand *api.Demand `json:"demand,omitempty"`
	}{a.Coming, a.Demand})
}

func newPeek() *cobra.Command {
	var job jobFlag
	var out output
	cmd := &cobra.Command{
		Use:   "peek",
		Short: "Print what comes next and which nodes would go, without ending the step",
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
