package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// command is one that the sidecar ran.
type command struct {
	args       []string
	began, end time.Time
}

// about reports whether the command is about one of these jobs, or has a name that begins so.
func (c command) about(jobs []string, name string) bool {
	return slices.ContainsFunc(c.args[1:], func(a string) bool {
		_, value, _ := strings.Cut(a, "=")
		return slices.Contains(jobs, value) || slices.Contains(jobs, a) || name != "" && strings.HasPrefix(value, name)
	})
}

// own reports whether the command brings nodes: no growth is possible without it, whichever program
// runs it.
func (c command) own() bool {
	return c.args[0] == "salloc" || c.args[0] == "scontrol" && slices.Contains(c.args, "NumNodes=0")
}

// growth is one growth as the application and the sidecar's log have it.
type growth struct {
	first, whole, own, asked, added time.Duration
}

// tell tells what the growths of a drive mode took.
func (l *latency) tell(mode string) error {
	ran, err := l.commands()
	if err != nil {
		return err
	}
	expanders, err := l.expanders()
	if err != nil {
		return err
	}
	files, err := l.notes(mode)
	if err != nil {
		return err
	}
	var all []growth
	for _, file := range files {
		notes, err := read(file)
		if err != nil {
			return err
		}
		for step := 2; step <= 2*l.growths; step += 2 {
			done, begun := notes[fmt.Sprintf("done %d", step-1)], notes[fmt.Sprintf("begun %d", step)]
			if done.at.IsZero() || begun.at.IsZero() {
				return fmt.Errorf("%s: step %d did not begin", file, step)
			}
			name := fmt.Sprintf("evo_%s_%d_", done.job, step)
			jobs := []string{begun.job}
			for id, of := range expanders {
				if strings.HasPrefix(of, name) {
					jobs = append(jobs, id)
				}
			}
			all = append(all, measure(ran, jobs, name, done.at, begun.at))
		}
	}
	pick := func(f func(growth) time.Duration) times {
		var t times
		for _, g := range all {
			t = append(t, f(g))
		}
		return t
	}
	fmt.Printf("| %s: %d growths | |\n|---|---|\n", mode, len(all))
	row := func(name string, t times) { fmt.Printf("| %s | %v |\n", name, t) }
	if mode != "stock chain" {
		row("from the call to the first command for it", pick(func(g growth) time.Duration { return g.first }))
	}
	row("from the call to the new nodes", pick(func(g growth) time.Duration { return g.whole }))
	if mode == "merge" || mode == "companion" {
		row("of that in salloc and the merge", pick(func(g growth) time.Duration { return g.own }))
		row("the rest, which the sidecar adds", pick(func(g growth) time.Duration { return g.added }))
		row("of that in other commands of Slurm", pick(func(g growth) time.Duration { return g.asked }))
	}
	fmt.Println()
	return nil
}

// measure measures a growth between the call and its answer.
func measure(ran []command, jobs []string, name string, from, to time.Time) (g growth) {
	g.whole, g.first = to.Sub(from), to.Sub(from)
	var own, other []command
	for _, c := range ran {
		if c.end.Before(from) || c.began.After(to) || !c.about(jobs, name) {
			continue
		}
		if d := c.began.Sub(from); d >= 0 {
			g.first = min(g.first, d)
		}
		if c.own() {
			own = append(own, c)
		} else {
			other = append(other, c)
		}
	}
	g.own = covered(own, from, to)
	g.added = g.whole - g.own
	g.asked = covered(append(own[:len(own):len(own)], other...), from, to) - g.own
	return g
}

// covered returns how long between two times some command was running.
func covered(all []command, from, to time.Time) (sum time.Duration) {
	slices.SortFunc(all, func(a, b command) int { return a.began.Compare(b.began) })
	for _, c := range all {
		if c.began.After(from) {
			from = c.began
		}
		if end := c.end; end.After(from) {
			if end.After(to) {
				end = to
			}
			sum += max(end.Sub(from), 0)
			from = end
		}
	}
	return sum
}

// commands returns those in the sidecar's log.
func (l *latency) commands() (all []command, err error) {
	file, err := os.Open(l.Dir + "/evoslurmd.log")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Msg     string
			Args    []string
			Began   time.Time
			Seconds float64
		}
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "a command of Slurm" && len(entry.Args) > 0 {
			all = append(all, command{entry.Args, entry.Began, entry.Began.Add(time.Duration(entry.Seconds * 1e9))})
		}
	}
	return all, lines.Err()
}

// expanders returns the names of the sidecar's jobs.
func (l *latency) expanders() (map[string]string, error) {
	text, err := l.Cluster.Run(context.Background(), slurmtest.Root, "squeue", "--noheader", "--states=all", "--format=%i %j")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "evo_") {
			all[id] = name
		}
	}
	return all, nil
}

// noted holds a script's notes.
type noted struct {
	job string
	at  time.Time
}

func read(file string) (map[string]noted, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := map[string]noted{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 4 {
			return nil, fmt.Errorf("%s: %q", file, line)
		}
		whole, part, _ := strings.Cut(f[3], ".")
		s, err := strconv.ParseInt(whole, 10, 64)
		if err != nil {
			return nil, err
		}
		ns, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		all[f[0]+" "+f[1]] = noted{f[2], time.Unix(s, ns)}
	}
	return all, nil
}

// times are durations, which print as their median, 95th percentile and longest.
type times []time.Duration

func (t times) at(q float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	slices.SortFunc(t, cmp.Compare)
	return t[int(q*float64(len(t)-1))]
}

func (t times) String() string {
	return fmt.Sprintf("median %d ms, 95 of 100 within %d ms, longest %d ms", t.at(0.5).Milliseconds(), t.at(0.95).Milliseconds(), t.at(1).Milliseconds())
}
