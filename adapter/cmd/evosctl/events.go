package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

const eventsHelp = `Print a line for each event of evolving jobs, or of one job: its adoption, start, growths
and shrinks, their distance from the plan, and failures. Users see events of the jobs that
they may read; operators also see events of the sidecar.`

// followPause is the interval between two requests of --follow.
const followPause = time.Second

func newEvents() *cobra.Command {
	var since string
	var lines int
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:   "events [JOB]",
		Short: "Show what happened to jobs",
		Long:  eventsHelp,
		Example: `  evosctl events 4711             all of one job
  evosctl events --since=2h       of the last two hours
  evosctl events -f               the last ones, then new ones
  evosctl events 4711 --json      for programs, one object a line`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := api.EventQuery{Limit: lines}
			if lines < 1 || lines > api.MaxEvents {
				return fmt.Errorf("--lines=%d: want 1 to %d", lines, api.MaxEvents)
			}
			var name api.JobName
			if len(args) > 0 {
				var err error
				if name, err = api.ParseJobName(args[0]); err != nil {
					return err
				}
			}
			if since != "" {
				at, err := parseSince(since, time.Now())
				if err != nil {
					return err
				}
				q.Since = at
			}
			if !cmd.Flags().Changed("lines") && (name.ID != 0 || since != "") {
				q.Limit = api.MaxEvents
			}
			client, err := connect(cmd)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			if q.Job, err = atOnce(ctx, client, func(ctx context.Context) (uint32, error) { return client.Find(ctx, name) }); err != nil {
				return err
			}
			there := false
			ask := func(ctx context.Context, q api.EventQuery) ([]api.Event, error) {
				if there { // if it goes away while followed, wait for it
					return client.Events(ctx, q)
				}
				events, err := atOnce(ctx, client, func(ctx context.Context) ([]api.Event, error) { return client.Events(ctx, q) })
				there = err == nil
				return events, err
			}
			return showEvents(ctx, os.Stdout, ask, q, follow, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&since, "since", "", "start of the events: 30m, 2h, 1d ago; 15:04, 2006-01-02, 2006-01-02T15:04:05")
	f.IntVarP(&lines, "lines", "n", 100, "number of latest events to print (1000 with a job or --since)")
	f.BoolVarP(&follow, "follow", "f", false, "print new events until interrupted")
	f.BoolVar(&asJSON, "json", false, "print one JSON object per line, in the API's form")
	complete.None(cmd, "since", "lines")
	return cmd
}

// showEvents writes events and, with follow, new ones until ctx ends.
func showEvents(ctx context.Context, out io.Writer, ask func(context.Context, api.EventQuery) ([]api.Event, error), q api.EventQuery, follow, asJSON bool) error {
	enc := json.NewEncoder(out)
	for {
		events, err := ask(ctx, q)
		if interrupted := follow && ctx.Err() != nil; err != nil && !interrupted {
			return err
		}
		for _, e := range events {
			if asJSON {
				err = enc.Encode(e)
			} else {
				_, err = io.WriteString(out, eventLine(e))
			}
			if err != nil {
				return err
			}
			q.After, q.Limit = e.ID, 0
		}
		if !follow {
			if len(events) == 0 && q.Job != 0 && q.Since.IsZero() {
				return fmt.Errorf("nothing is known of a job %d: no evolving job, or one that ended long ago", q.Job)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// eventLine returns an event for people; whatever users have put into it stays on its line.
func eventLine(e api.Event) string {
	whose := "sidecar"
	if e.Job != 0 {
		whose = fmt.Sprintf("job %d", e.Job)
	}
	text := legible.Printable(strings.Join(strings.Fields(e.Text), " "), false)
	return fmt.Sprintf("%s  %-10s  %s\n", e.At.Local().Format("2006-01-02T15:04:05"), whose, text)
}

// parseSince reads a length of time before now, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, m, d := now.Date()
			t = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
			return t, nil
		}
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since=%s: want a length of time such as 30m, 2h or 1d, or a time such as 15:04 or 2006-01-02T15:04:05", text)
}
