package main

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/injob"
)

const peekHelp = `Print what the next step is planned to be, without ending the present one:

  eval "$(evosctl peek)"
  [ -n "$EVO_NEXT_LEAVING" ] && ./leave "$EVO_NEXT_LEAVING"

Set after the eval: EVO_NEXT_STEP (from 1), EVO_NEXT_NODES (how many),
EVO_NEXT_AT (when it is planned, in Unix seconds), EVO_NEXT_ARRIVING and
EVO_NEXT_LEAVING (nodes, as n[1-5]). All are empty in the last step.

It is the plan of this moment: a step that ends earlier or later than planned may
bring other nodes, and evosctl next --release names others to leave. EVO_NEXT_AT is
empty while the step is not planned: after one that lasted longer than its profile
says, it is planned once evosctl next is called.`

func newPeek() *cobra.Command {
	var job jobFlag
	var out output
	cmd := &cobra.Command{
		Use:   "peek",
		Short: "Print what the next step is planned to be, without ending the present one",
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
				enc := json.NewEncoder(os.Stdout)
				enc.SetIndent("", "  ")
				err = enc.Encode(a.Coming)
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
