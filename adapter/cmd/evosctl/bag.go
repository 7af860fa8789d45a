package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/job/bag"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

const tasksHelp = `Show how a bag of tasks stands (evosrun --tasks): how many tasks are done, run, wait, and failed, and
how long the rest will take.

  evosctl tasks                  # in the job: its own bag
  evosctl tasks 4711             # the folder evobag-4711 here
  evosctl tasks /scratch/bag     # any folder (evosrun --bag)
  evosctl tasks --failed 4711    # each failed task with the reason
  evosctl tasks evocampaign-1    # a campaign, with a line for each cluster

The time left is what three of four tasks took at most, times the tasks that are left, divided by the tasks
that may run at once. The command reads the journal in the folder; it needs no sidecar, and no job.`

func newTasks() *cobra.Command {
	var failed, asJSON bool
	cmd := &cobra.Command{
		Use:   "tasks [JOB|DIR]",
		Short: "Show how a bag of tasks stands",
		Long:  tasksHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := bagFolder(args)
			if err != nil {
				return err
			}
			s, err := bag.Read(dir)
			if err != nil {
				return err
			}
			m := s.Summary(time.Now())
			if failed {
				s.ReadTexts(dir)
				m.Failures = s.Failures()
			}
			switch {
			case asJSON:
				return printJSON(os.Stdout, m)
			case failed:
				return printFailures(os.Stdout, m.Failures)
			}
			return printTasks(os.Stdout, m, display.Look(os.Stdout, os.Getenv))
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "list the tasks that failed, with their reasons")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// bagFolder returns the folder that an argument means.
func bagFolder(args []string) (string, error) {
	if len(args) == 0 {
		job, err := injob.JobID("", os.Getenv)
		if err != nil {
			return "", fmt.Errorf("which bag? Name its folder, or a job: %w", err)
		}
		return injob.DefaultBag(job), nil
	}
	if id, err := strconv.ParseUint(args[0], 10, 32); err == nil && id > 0 {
		return injob.DefaultBag(uint32(id)), nil
	}
	return args[0], nil
}

// silentAfter is how long a campaign's job may show no sign of life before that is noted.
const silentAfter = time.Minute

// printClusters writes what the clusters of a campaign do.
func printClusters(out io.Writer, all []bag.ClusterSummary, now time.Time) {
	if len(all) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "CLUSTER\tJOB\tSLOTS\tRUNNING\tDONE\tFAILED\tLOST\tNOTE")
	for _, c := range all {
		job, note := "-", "no job works here"
		if len(c.Jobs) > 0 {
			job, note = strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Jobs), " ", ","), "[]"), "-"
		}
		switch silent := now.Sub(c.Seen).Round(time.Second); {
		case c.Out != nil:
			note = fmt.Sprintf("left out until %s: %s", c.Out.Local().Format("15:04:05"), c.Why)
		case len(c.Jobs) > 0 && silent > silentAfter:
			note = fmt.Sprintf("no sign of life for %v", silent)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", legible.Printable(c.Name, false), job, c.Slots, c.Running, c.Done, c.Failed, c.Lost, note)
	}
}

func printTasks(out io.Writer, m bag.Summary, t display.Terminal) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks: %d done, %d running, %d waiting, %d failed\n", m.Tasks, m.Done, m.Running, m.Waiting, m.Failed)
	if m.Saved > 0 {
		fmt.Fprintf(&b, "%d of those that wait go on from a checkpoint\n", m.Saved)
	}
	if m.Voids > 0 {
		fmt.Fprintf(&b, "%d checkpoints could not be read: their tasks started from the beginning\n", m.Voids)
	}
	if m.TaskSeconds != nil {
		fmt.Fprintf(&b, "three of four tasks took at most %s\n", short(*m.TaskSeconds))
	}
	switch {
	case m.Running+m.Waiting == 0:
	case m.Slots == 0:
		b.WriteString("no worker runs\n")
	case m.LeftSeconds == nil:
		fmt.Fprintf(&b, "up to %d run at once; the time left is not known before a task has ended\n", m.Slots)
	default:
		fmt.Fprintf(&b, "up to %d run at once; about %s left\n", m.Slots, short(*m.LeftSeconds))
	}
	if m.Late > 0 {
		fmt.Fprintf(&b, "runs that ended late, after their tasks had been leased again, and do not count: %d\n", m.Late)
	}
	if m.Collected != "" {
		fmt.Fprintf(&b, "the command that collects: %s\n", m.Collected)
	}
	if t.Width > 0 {
		fmt.Fprintln(&b, m.Bar())
	}
	printClusters(&b, m.Clusters, time.Now())
	_, err := io.WriteString(out, b.String())
	return err
}

// short writes seconds for people.
func short(seconds float64) string {
	d := time.Duration(min(seconds, 1e9) * float64(time.Second))
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

func printFailures(out io.Writer, all []bag.Failure) error {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%d: %s", f.ID, f.Reason)
		if f.Task != "" {
			fmt.Fprintf(&b, ": %s", f.Task)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
