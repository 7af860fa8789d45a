package outcome

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// columns lists the columns of Batsim's jobs.csv.
var columns = []string{"job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time", "success", "final_state",
	"starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy", "metadata"}

// WriteJobs writes the jobs that ran as Batsim's jobs.csv. A job that changes its size is shown
// with all nodes that it ever had; its sizes are in the column metadata, as a profile.
func WriteJobs(out io.Writer, o *Outcome) error {
	blocks, err := o.Layout()
	if err != nil {
		return err
	}
	nodes := make([][]Range, len(o.Jobs))
	for _, b := range blocks {
		nodes[b.Job] = append(nodes[b.Job], b.Range)
	}
	w := csv.NewWriter(bufio.NewWriterSize(out, 1<<16))
	if err := w.Write(columns); err != nil {
		return err
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if !j.Ran() {
			continue
		}
		success, state := "0", "COMPLETED_FAILED"
		switch {
		case j.State == Completed:
			success, state = "1", "COMPLETED_SUCCESSFULLY"
		case j.State == "TIMEOUT":
			state = "COMPLETED_WALLTIME_REACHED"
		case j.State == "CANCELLED":
			state = "COMPLETED_KILLED"
		}
		run, turn := j.End-j.Start, j.End-j.Submit
		limit := j.Limit
		if limit == 0 {
			limit = run
		}
		sizes := ""
		if j.Evolving {
			var steps []string
			j.spans(func(start, end int64, nodes int) {
				steps = append(steps, strconv.Itoa(nodes)+"@"+number(end-start)+"s")
			})
			sizes = strings.Join(steps, ",")
		}
		if err := w.Write([]string{j.ID, "evoslurm", "", number(j.Submit), strconv.Itoa(j.Sizes[0].Nodes), number(limit), success, state,
			number(j.Start), number(run), number(j.End), number(j.Wait()), number(turn), strconv.FormatFloat(float64(turn)/float64(max(run, 1)), 'f', 6, 64),
			intervals(nodes[i]), joules(j.KWh), sizes}); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// joules returns an energy in Batsim's form; -1 if it is unknown.
func joules(kwh float64) string {
	if kwh == 0 {
		return "-1"
	}
	return strconv.FormatFloat(3.6e6*kwh, 'f', 0, 64)
}

// intervals returns nodes in Batsim's form: "0-3 7".
func intervals(all []Range) string {
	slices.SortFunc(all, func(a, b Range) int { return a.First - b.First })
	var text []string
	for i := 0; i < len(all); {
		r := all[i]
		for i++; i < len(all) && all[i].First <= r.Last+1; i++ {
			r.Last = max(r.Last, all[i].Last)
		}
		word := strconv.Itoa(r.First)
		if r.Last > r.First {
			word += "-" + strconv.Itoa(r.Last)
		}
		text = append(text, word)
	}
	return strings.Join(text, " ")
}

// WriteSchedule writes the figures of an outcome as Batsim's schedule.json. Unknown energy is zero
// joules.
func WriteSchedule(out io.Writer, o *Outcome, version string) error {
	f := o.Measure()
	killed, stretch, ended := 0, make([]float64, 0, len(o.Jobs)), 0
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if !j.Ran() {
			continue
		}
		ended++
		if j.State != Completed {
			killed++
		}
		stretch = append(stretch, float64(j.End-j.Submit)/float64(max(j.End-j.Start, 1)))
	}
	s, area := trace.SpreadOf(stretch), f.Allocated
	joules := 0.
	if o.Energy != nil {
		joules = 3.6e6 * o.Energy.KWh
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{ // in order of names
		"batsim_version": "evoslurm " + version, "consumed_joules": joules, "makespan": o.Makespan(),
		"max_slowdown": s.Max, "max_turnaround_time": f.Turnaround.Max, "max_waiting_time": f.Wait.Max,
		"mean_slowdown": s.Mean, "mean_turnaround_time": f.Turnaround.Mean, "mean_waiting_time": f.Wait.Mean,
		"nb_computing_machines": o.Nodes, "nb_grouped_switches": 0, "nb_jobs": len(o.Jobs), "nb_jobs_finished": ended, "nb_jobs_killed": killed,
		"nb_jobs_rejected": len(o.Jobs) - ended, "nb_jobs_success": ended - killed, "nb_machine_switches": 0, "success_rate": float64(ended-killed) / float64(max(len(o.Jobs), 1)),
		"time_computing": area, "time_idle": f.Idle, "time_sleeping": 0, "time_switching_off": 0, "time_switching_on": 0, "time_unavailable": 0,
	})
}

// WritePerfetto writes an outcome as a JSON trace of events: waiting jobs, running jobs on lanes
// with their sizes, and the counts of used nodes and waiting jobs. Times are microseconds.
func WritePerfetto(out io.Writer, o *Outcome) error {
	w := bufio.NewWriterSize(out, 1<<16)
	first := true
	event := func(e map[string]any) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if !first {
			io.WriteString(w, ",\n")
		}
		first = false
		_, err = w.Write(text)
		return err
	}
	const micro = 1_000_000
	io.WriteString(w, `{"displayTimeUnit":"ms","traceEvents":[`+"\n")
	if err := event(map[string]any{"ph": "M", "pid": 1, "name": "process_name", "args": map[string]any{"name": o.Name + ": " + strconv.Itoa(o.Nodes) + " nodes"}}); err != nil {
		return err
	}
	var order []int
	for i := range o.Jobs {
		if o.Jobs[i].Ran() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(max(o.Jobs[a].Start-o.Jobs[b].Start, -1), 1))
	})
	lanes := freeLanes{}
	type change struct {
		at             int64
		nodes, waiting int
	}
	var changes []change
	for _, i := range order {
		j := &o.Jobs[i]
		lane := lanes.take(j.Start, j.End)
		if err := event(map[string]any{"ph": "X", "pid": 1, "tid": lane + 1, "ts": j.Start * micro, "dur": (j.End - j.Start) * micro, "name": "job " + j.ID, "cat": map[bool]string{true: "evolving", false: "stock"}[j.Evolving],
			"args": map[string]any{"submit": j.Submit, "wait": j.Wait(), "state": j.State, "nodes": j.Peak()}}); err != nil {
			return err
		}
		steps := 0
		j.spans(func(int64, int64, int) { steps++ })
		var wrong error
		j.spans(func(start, end int64, nodes int) {
			changes = append(changes, change{start, nodes, 0}, change{end, -nodes, 0})
			if steps > 1 && wrong == nil {
				wrong = event(map[string]any{"ph": "X", "pid": 1, "tid": lane + 1, "ts": start * micro, "dur": (end - start) * micro, "name": strconv.Itoa(nodes) + " nodes"})
			}
		})
		if wrong != nil {
			return wrong
		}
		changes = append(changes, change{j.Submit, 0, 1}, change{j.Start, 0, -1})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(min(max(a.at-b.at, -1), 1)) })
	nodes, waiting := 0, 0
	for i, c := range changes {
		nodes, waiting = nodes+c.nodes, waiting+c.waiting
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		if err := event(map[string]any{"ph": "C", "pid": 1, "ts": c.at * micro, "name": "nodes in use", "args": map[string]any{"nodes": nodes}}); err != nil {
			return err
		}
		if err := event(map[string]any{"ph": "C", "pid": 1, "ts": c.at * micro, "name": "waiting jobs", "args": map[string]any{"jobs": waiting}}); err != nil {
			return err
		}
	}
	io.WriteString(w, "\n]}\n")
	return w.Flush()
}
