package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/injob"
	"github.com/evoslurm/evoslurm/planner"
)

const profileHelp = `Tell which profile would have fitted jobs that ran, by what was recorded of their steps:
how long each was asked for, how long it lasted until the application ended it, and how
long it then still had its nodes while it waited for the next step's. Of several jobs, runs
of the same application, the longest of each step counts. The profile is printed last, for
evosbatch --profile=@NAME:

  evosctl profile 4711 4712 -q >~/.config/evoslurm/profiles/amr
  evosbatch --profile=@amr amr.sh

--margin is added to each step, 5 % if not given: a step that lasts longer than its
profile says is late for those who wait for the nodes.`

func newProfile() *cobra.Command {
	var quiet bool
	margin := 5
	cmd := &cobra.Command{
		Use:   "profile JOB...",
		Short: "Tell which profile would have fitted jobs that ran",
		Long:  profileHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if margin < 0 || margin > 1000 {
				return fmt.Errorf("--margin=%d: want a percentage from 0 to 1000", margin)
			}
			client, err := injob.Connect(cmd.Flags(), "evosctl", os.Stderr)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			var all [][]ranStep
			for _, arg := range args {
				id, err := strconv.ParseUint(arg, 10, 32)
				if err != nil || id == 0 {
					return fmt.Errorf("%q is no job id", arg)
				}
				j, err := client.Job(ctx, uint32(id))
				if err != nil {
					return err
				}
				events, err := client.Events(ctx, api.EventQuery{Job: j.ID, Limit: api.MaxEvents})
				if err != nil {
					return err
				}
				steps, err := ranSteps(j, events)
				if err != nil {
					return fmt.Errorf("job %d: %w", j.ID, err)
				}
				all = append(all, steps)
				if !quiet {
					showRan(os.Stdout, j, steps)
				}
			}
			fits, err := fitting(all, margin)
			if err != nil {
				return err
			}
			fmt.Println(fits)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the profile alone")
	cmd.Flags().IntVar(&margin, "margin", margin, "percent that each step is to be longer than it was")
	return cmd
}

// ranStep is a step as it was asked for and as it was, in seconds.
type ranStep struct {
	nodes         int
	asked         int64
	lasted, idled int64 // until the application ended it; from then on until the next had its nodes
	byApplication bool  // it said when the step ended; else the job's end did
}

// ranSteps are the steps of a job that have ended.
func ranSteps(j api.Job, events []api.Event) ([]ranStep, error) {
	p, err := planner.ParseProfile(j.Profile)
	if err != nil {
		return nil, fmt.Errorf("its profile: %w", err)
	}
	ends := map[int]time.Time{}
	for _, e := range events {
		var d struct {
			Step int `json:"step"`
		}
		if e.Kind == "step ended" && json.Unmarshal(e.Detail, &d) == nil {
			ends[d.Step] = e.At
		}
	}
	var steps []ranStep
	for i := range p {
		var begin, end time.Time
		for _, span := range j.Past {
			if span.Step == i+1 {
				if begin.IsZero() {
					begin = span.Start
				}
				end = span.End
			}
		}
		if begin.IsZero() || end.IsZero() {
			break // it has not begun, or goes on
		}
		s := ranStep{nodes: p[i].Nodes, asked: p[i].Duration}
		ended, told := ends[i+1]
		if s.byApplication = told && !ended.After(end) && ended.After(begin); !s.byApplication {
			ended = end
		}
		s.lasted = max(int64(ended.Sub(begin).Round(time.Second)/time.Second), 1)
		s.idled = int64(end.Sub(ended).Round(time.Second) / time.Second)
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return nil, errors.New("none of its steps has ended")
	}
	return steps, nil
}

// fitting is the profile that all of these runs would have fitted into.
func fitting(runs [][]ranStep, margin int) (planner.Profile, error) {
	fits := make(planner.Profile, len(runs[0]))
	for _, run := range runs {
		if len(run) != len(fits) {
			return nil, fmt.Errorf("the jobs have %d and %d steps that have ended: they are no runs of the same", len(fits), len(run))
		}
		for i, s := range run {
			if fits[i].Nodes = cmp.Or(fits[i].Nodes, s.nodes); fits[i].Nodes != s.nodes {
				return nil, fmt.Errorf("step %d has %d nodes in one job and %d in another", i+1, fits[i].Nodes, s.nodes)
			}
			fits[i].Duration = max(fits[i].Duration, s.lasted+(s.lasted*int64(margin)+99)/100)
		}
	}
	return fits, nil
}

func showRan(out io.Writer, j api.Job, steps []ranStep) {
	fmt.Fprintf(out, "# job %d\n# %4s %5s %10s %10s %10s\n", j.ID, "STEP", "NODES", "ASKED", "LASTED", "IDLE AFTER")
	for i, s := range steps {
		note := ""
		if !s.byApplication {
			note = "  (until the job's end)"
		}
		fmt.Fprintf(out, "# %4d %5d %10s %10s %10s%s\n", i+1, s.nodes, planner.FormatDuration(s.asked), planner.FormatDuration(s.lasted), planner.FormatDuration(s.idled), note)
	}
}
