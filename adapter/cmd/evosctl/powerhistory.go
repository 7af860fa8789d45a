package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/show/chart"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// heat draws a column per hour.
func heat(hours []int, most int) string {
	return chart.Heat(hours, most, display.Look(os.Stdout, os.Getenv).ASCII)
}

// historyOf returns the question what was learnt, of all partitions or of one.
func historyOf(partition string) func(*api.Client, context.Context) (api.PowerHistory, error) {
	return func(c *api.Client, ctx context.Context) (api.PowerHistory, error) {
		h, err := c.PowerHistory(ctx)
		if err != nil || partition == "" {
			return h, err
		}
		names := make([]string, len(h.Partitions))
		for i, w := range h.Partitions {
			names[i] = w.Partition
		}
		at := slices.Index(names, partition)
		if at < 0 {
			return h, fmt.Errorf("nothing was learnt of a partition %q; there are: %s", partition, strings.Join(names, ", "))
		}
		h.Partitions = h.Partitions[at : at+1]
		return h, nil
	}
}

const hoursOfDay = 24

var days = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// grids lists what is shown of each hour of the week.
var grids = []struct {
	title   string
	cell    func(api.PowerHour) int
	guessed bool // where the hour was not watched often enough
}{
	{"nodes that stay awake", func(h api.PowerHour) int { return h.Reserve }, true},
	{"nodes that jobs took within a boot, at most", func(h api.PowerHour) int { return h.Most }, false},
	{"samples: periods with such jobs", func(h api.PowerHour) int { return h.Periods }, false},
	{"samples: weeks in which the hour was watched", func(h api.PowerHour) int { return h.Weeks }, false},
}

func showHistory(w io.Writer, h api.PowerHistory) {
	if h.Why != "" {
		fmt.Fprintf(w, "Nothing is learnt: %s\n", h.Why)
	}
	fmt.Fprintf(w, "Jobs that nobody planned may wait for %v on average (power.max_wait); a boot takes %v.\n", seconds(h.MaxWait), seconds(h.Boot))
	fmt.Fprintf(w, "At least %d nodes of each partition stay awake (power.reserve). What an hour needs is awake %v before it.\n", h.Reserve, seconds(h.Ahead))
	fmt.Fprintf(w, "An hour counts once it was watched in %d weeks. Until then, a quarter of the partition stays awake (~).\n", h.LeastWeeks)
	if h.Mode == string(config.PowerOff) {
		fmt.Fprintln(w, "Mode: off, so Slurm alone decides which nodes stay awake.")
	}
	if len(h.Partitions) == 0 {
		fmt.Fprintln(w, "\nNothing was learnt yet: that takes at least an hour.")
	}
	for _, week := range h.Partitions {
		fmt.Fprintf(w, "\nPartition %s, %d nodes; hours in UTC, * is the present one\n", week.Partition, week.Nodes)
		for _, g := range grids {
			fmt.Fprintf(w, "\n%s\n", g.title)
			showGrid(w, week.Hours, g.cell, func(i int, hour api.PowerHour) string {
				switch {
				case i == h.Hour:
					return "*"
				case g.guessed && hour.Weeks < h.LeastWeeks:
					return "~"
				}
				return ""
			})
		}
	}
}

// showGrid prints a row per day with a number and its mark per hour, and a picture of the day.
func showGrid(w io.Writer, hours []api.PowerHour, cell func(api.PowerHour) int, mark func(int, api.PowerHour) string) {
	numbers, most := make([]int, len(hours)), 0
	for i, h := range hours {
		numbers[i] = cell(h)
		most = max(most, numbers[i])
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	for hour := range hoursOfDay {
		fmt.Fprintf(t, "\t%d", hour)
	}
	fmt.Fprintln(t, "\t")
	for i, day := range days {
		first := i * hoursOfDay
		if len(numbers) < first+hoursOfDay {
			break
		}
		fmt.Fprint(t, day)
		for hour, n := range numbers[first : first+hoursOfDay] {
			fmt.Fprintf(t, "\t%s%d", mark(first+hour, hours[first+hour]), n)
		}
		fmt.Fprintf(t, "\t  %s\n", heat(numbers[first:first+hoursOfDay], most))
	}
	t.Flush()
}
