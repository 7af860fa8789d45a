package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// summarise writes what was measured.
func summarise(out io.Writer, t terminal, evolving, rigid outcome) {
	fmt.Fprintln(out, t.bold("What every evolving job asked for, was promised and got"))
	fmt.Fprintln(out, t.dim("actual: nodes that answered a srun inside the job at the beginning and end of a step"))
	for _, r := range evolving.jobs {
		if r.Evolving {
			r.writeProfiles(out, t)
		}
	}
	fmt.Fprintln(out)
	fmt.Fprintln(out, t.bold("The same jobs evolving, and at their peak sizes"), "(seconds)")
	fmt.Fprintf(out, "%-20s %16s  %16s\n", "", "evolving", "peak size")
	fmt.Fprintf(out, "%-10s %-10s %7s %7s  %8s %7s\n", "job", "user", "waits", "ends", "waits", "ends")
	for i, r := range evolving.jobs {
		fmt.Fprintf(out, "%-10s %-10s %s   %s%s\n", legible.Cut(r.Name, 10, ""), legible.Cut(r.owner, 10, ""), r.times(evolving), peakTimes(rigid, i), stockMark(r))
	}
	e, p := evolving.account(), rigid.account()
	fmt.Fprintf(out, "\n%-29s %9s %9s\n", "", "evolving", "peak size")
	for _, line := range []struct {
		what           string
		evolving, peak float64
		unit           string
	}{
		{"all jobs done after", e.makespan, p.makespan, "s"},
		{"a job waits, on average", e.wait, p.wait, "s"},
		{"nodes allocated", e.allocated, p.allocated, "node-seconds"},
		{"  wasted: not asked for", e.wasted, p.wasted, "node-seconds"},
		{"nodes idle, held or free", e.idle, p.idle, "node-seconds"},
	} {
		fmt.Fprintf(out, "%-29s %9.0f %9.0f  %s\n", line.what, line.evolving, line.peak, line.unit)
	}
}

// writeProfiles writes the three profiles of a job below each other, step by step.
func (r *result) writeProfiles(out io.Writer, t terminal) {
	mark := t.green("✓")
	if t.ascii {
		mark = t.green("ok")
	}
	if len(r.faults(true)) > 0 {
		mark = t.red("✗")
		if t.ascii {
			mark = t.red("FAULTY")
		}
	}
	fmt.Fprintf(out, "\n%s %s  %s\n", t.bold(fmt.Sprintf("%d %s", r.id, r.Name)), mark,
		t.dim(fmt.Sprintf("%s, %s; start first planned after %.0f s, actual after %.1f s",
			r.owner, r.drive, max(r.promised.Sub(r.submitted), 0).Seconds(), r.delay().Seconds())))
	if r.Limit != 0 {
		fmt.Fprintln(out, t.dim(fmt.Sprintf("  expand limit %s: a step may wait for the next one's nodes that many times its duration", r.Limit)))
	}
	requested, plan, actual, usable := []string{}, []string{}, []string{}, []string{"-"}
	for i, s := range r.Profile {
		requested = append(requested, fmt.Sprintf("%d@%ds", s.Nodes, s.Duration))
		if i < len(r.planned) {
			p := r.planned[i]
			plan = append(plan, fmt.Sprintf("%d@%.0fs", p.nodes, p.end.Sub(p.start).Seconds()))
		}
		if i < len(r.trace.steps) {
			first, last := len(r.trace.steps[i].first.nodes), len(r.trace.steps[i].last.nodes)
			nodes := fmt.Sprint(first)
			if last != first {
				nodes += fmt.Sprintf("/%d", last)
			}
			actual = append(actual, fmt.Sprintf("%s@%.1fs", nodes, r.held(i).Seconds()))
			if i > 0 {
				usable = append(usable, fmt.Sprintf("%.2fs", r.latency(i).Seconds()))
			}
		}
	}
	for _, row := range []struct {
		label string
		cells []string
	}{{"requested", requested}, {"planned", plan}, {"actual", actual}, {"usable in", usable}} {
		var b strings.Builder
		fmt.Fprintf(&b, "  %-11s", row.label)
		for _, c := range row.cells {
			fmt.Fprintf(&b, "%-10s", c)
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
}

func stockMark(r *result) string {
	if r.Evolving {
		return ""
	}
	return "  stock"
}

// delay is from the submission until the script's first line.
func (r *result) delay() time.Duration {
	if r.trace.begin.IsZero() {
		return 0
	}
	return r.trace.begin.Sub(r.submitted)
}

// times returns the wait of a job and its end since the phase began.
func (r *result) times(o outcome) string {
	if r.trace.end.IsZero() {
		return fmt.Sprintf("%7s %7s", "-", "-")
	}
	return fmt.Sprintf("%7.1f %7.1f", r.delay().Seconds(), r.trace.end.Sub(o.begin()).Seconds())
}

func peakTimes(rigid outcome, i int) string {
	if i >= len(rigid.jobs) {
		return ""
	}
	return rigid.jobs[i].times(rigid)
}

// account is the cost of a phase.
type account struct {
	makespan, wait          float64 // seconds
	allocated, wasted, idle float64 // node-seconds
}

func (o outcome) account() account {
	a := account{makespan: o.makespan().Seconds()}
	for _, r := range o.jobs {
		a.wait += r.delay().Seconds() / float64(len(o.jobs))
		a.allocated += r.trace.nodeSeconds()
		a.wasted += r.trace.nodeSeconds() - float64(r.Profile.Area())
	}
	a.idle = a.makespan*float64(o.nodes) - a.allocated
	return a
}
