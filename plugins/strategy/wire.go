package strategy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/evoslurm/evoslurm/planner"
	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
)

// encodeRequest encodes the pinned jobs first, then the others.
func encodeRequest(r Request, parameters map[string]string, left time.Duration) *pb.PlanRequest {
	jobs, steps := len(r.Pinned)+len(r.Jobs), 0
	for _, p := range r.Pinned {
		steps += len(p.Steps)
	}
	for _, j := range r.Jobs {
		steps += len(j.Profile)
	}
	m := &pb.PlanRequest{
		Parameters: parameters, Nodes: uint32(r.Nodes), Now: r.Now, DeadlineMs: uint32(min(max(left.Milliseconds(), 1), math.MaxUint32)),
		BusyStart: make([]int64, len(r.Busy)), BusyDuration: make([]int64, len(r.Busy)), BusyNodes: make([]uint32, len(r.Busy)),
		JobStart: make([]int64, 0, jobs), JobExpandLimit: make([]float64, 0, jobs), JobSteps: make([]uint32, 0, jobs),
		StepDuration: make([]int64, 0, steps), StepNodes: make([]uint32, 0, steps),
	}
	for i, b := range r.Busy {
		m.BusyStart[i], m.BusyDuration[i], m.BusyNodes[i] = b.Start, b.Duration, uint32(b.Nodes)
	}
	add := func(start int64, limit planner.ExpandLimit, profile planner.Profile) {
		m.JobStart = append(m.JobStart, start)
		m.JobExpandLimit = append(m.JobExpandLimit, float64(limit))
		m.JobSteps = append(m.JobSteps, uint32(len(profile)))
		for _, s := range profile {
			m.StepDuration = append(m.StepDuration, s.Duration)
			m.StepNodes = append(m.StepNodes, uint32(s.Nodes))
		}
	}
	if len(r.Pinned) > 0 {
		m.JobPinned = make([]bool, jobs)
	}
	for i, p := range r.Pinned {
		m.JobPinned[i] = true
		add(p.Start, 1, p.Steps)
	}
	for _, j := range r.Jobs {
		add(j.Submit, j.ExpandLimit, j.Profile)
	}
	if r.IsMoldable() {
		encodeAlternatives(m, r)
	}
	encodeSets(m, r.Sets)
	return m
}

// decodeRequest reads a request; pinned marks the rows of pinned jobs.
func decodeRequest(m *pb.PlanRequest) (r Request, pinned []bool, err error) {
	n := len(m.JobStart)
	switch {
	case len(m.BusyStart) != len(m.BusyDuration) || len(m.BusyStart) != len(m.BusyNodes):
		return r, nil, errors.New("the columns of the busy nodes differ in length")
	case len(m.JobExpandLimit) != n || len(m.JobSteps) != n || len(m.JobPinned) != 0 && len(m.JobPinned) != n:
		return r, nil, errors.New("the columns of the jobs differ in length")
	case len(m.StepDuration) != len(m.StepNodes):
		return r, nil, errors.New("the columns of the steps differ in length")
	}
	r.Nodes, r.Now = int(m.Nodes), m.Now
	r.Busy = make([]planner.Busy, len(m.BusyStart))
	for i := range r.Busy {
		r.Busy[i] = planner.Busy{Start: m.BusyStart[i], Duration: m.BusyDuration[i], Nodes: int(m.BusyNodes[i])}
	}
	steps := make(planner.Profile, len(m.StepDuration))
	for i := range steps {
		steps[i] = planner.Step{Duration: m.StepDuration[i], Nodes: int(m.StepNodes[i])}
	}
	r.Jobs = make([]planner.Job, 0, n)
	pinned = make([]bool, n)
	for i := range n {
		count := int(m.JobSteps[i])
		if count > len(steps) {
			return r, nil, fmt.Errorf("there are fewer steps than the jobs have: %d", len(m.StepDuration))
		}
		profile := steps[:count:count]
		steps = steps[count:]
		if len(m.JobPinned) > 0 && m.JobPinned[i] {
			pinned[i] = true
			r.Pinned = append(r.Pinned, planner.Placement{Start: m.JobStart[i], Steps: profile})
			continue
		}
		r.Jobs = append(r.Jobs, planner.Job{ID: strconv.Itoa(i + 1), Submit: m.JobStart[i], Profile: profile,
			ExpandLimit: planner.ExpandLimit(m.JobExpandLimit[i])})
	}
	if len(steps) > 0 {
		return r, nil, fmt.Errorf("there are %d steps more than the jobs have", len(steps))
	}
	return r, pinned, errors.Join(decodeSets(m, &r), decodeAlternatives(m, &r, pinned))
}

// encodeAnswer writes the rows of all jobs in the order of the request.
func encodeAnswer(r Request, pinned []bool, rigid bool, a Answer) *pb.PlanResponse {
	m := &pb.PlanResponse{Start: make([]int64, 0, len(pinned)), StepDuration: make([]int64, 0, 4*len(pinned))}
	at, job, moldable := 0, 0, r.IsMoldable()
	for row, isPinned := range pinned {
		var placed planner.Placement
		steps := 0
		if isPinned {
			placed = r.Pinned[at]
			at, steps = at+1, len(placed.Steps)
		} else {
			placed, steps = a.Schedule[job], len(r.Jobs[job].Choice(a.Schedule[job].Choice))
			if rigid {
				steps = 1
			}
			if why, unfit := a.Unfit[job]; unfit {
				m.Unfit = append(m.Unfit, uint32(row))
				m.UnfitReason = append(m.UnfitReason, why)
				placed = planner.Placement{Steps: make(planner.Profile, steps)}
			}
			job++
		}
		m.Start = append(m.Start, placed.Start)
		if moldable {
			m.Choice = append(m.Choice, uint32(placed.Choice))
		}
		for k := range steps {
			if k < len(placed.Steps) {
				m.StepDuration = append(m.StepDuration, placed.Steps[k].Duration)
			}
		}
	}
	return m
}

// decodeAnswer reads a plugin's answer to encodeRequest(r) and checks its shape and the pinned
// jobs. Check does the rest.
func decodeAnswer(r Request, rigid bool, m *pb.PlanResponse) (Answer, error) {
	jobs := len(r.Pinned) + len(r.Jobs)
	if len(m.Start) != jobs {
		return Answer{}, fmt.Errorf("%d jobs answered of %d", len(m.Start), jobs)
	}
	if len(m.Unfit) != len(m.UnfitReason) {
		return Answer{}, fmt.Errorf("%d reasons for %d infeasible jobs", len(m.UnfitReason), len(m.Unfit))
	}
	durations := m.StepDuration
	take := func(n int) []int64 {
		if n > len(durations) {
			return nil
		}
		head := durations[:n]
		durations = durations[n:]
		return head
	}
	for i, p := range r.Pinned {
		got := take(len(p.Steps))
		same := got != nil && m.Start[i] == p.Start
		for k := range got {
			same = same && got[k] == p.Steps[k].Duration
		}
		if !same {
			return Answer{}, fmt.Errorf("pinned job %d is moved: it starts at second %d with steps of %v s, answered as %d and %v", i+1, p.Start, profileDurations(p.Steps), m.Start[i], got)
		}
	}
	a := Answer{Schedule: make(planner.Schedule, len(r.Jobs))}
	if len(m.Unfit) > 0 {
		a.Unfit = make(map[int]string, len(m.Unfit))
	}
	for k, row := range m.Unfit {
		job := int(row) - len(r.Pinned)
		if k > 0 && row <= m.Unfit[k-1] || job < 0 || job >= len(r.Jobs) {
			return Answer{}, fmt.Errorf("job %d of %d is said to be infeasible, twice, out of order or pinned", row, jobs)
		}
		a.Unfit[job] = clean(m.UnfitReason[k], 200)
	}
	if len(m.Choice) != 0 && len(m.Choice) != jobs {
		return Answer{}, fmt.Errorf("%d choices for %d jobs", len(m.Choice), jobs)
	}
	total := 0
	for _, j := range r.Jobs {
		total += len(j.Profile)
	}
	memory := make(planner.Profile, 0, total)
	for i, j := range r.Jobs {
		choice := 0
		if len(m.Choice) > 0 {
			if choice = int(m.Choice[len(r.Pinned)+i]); choice >= j.Choices() {
				return Answer{}, fmt.Errorf("job %d has %d profiles, and is given number %d", i+1, j.Choices(), choice+1)
			}
		}
		profile := j.Choice(choice)
		steps := len(profile)
		if rigid {
			steps = 1
		}
		got := take(steps)
		if got == nil {
			return Answer{}, fmt.Errorf("%d step durations answered, too few", len(m.StepDuration))
		}
		if _, unfit := a.Unfit[i]; unfit {
			continue
		}
		first := len(memory)
		for k, d := range got {
			nodes := 0
			if rigid {
				nodes = profile.Peak()
			} else {
				nodes = profile[k].Nodes
			}
			memory = append(memory, planner.Step{Duration: d, Nodes: nodes})
		}
		a.Schedule[i] = planner.Placement{Start: m.Start[len(r.Pinned)+i], Steps: memory[first:len(memory):len(memory)], Choice: choice}
	}
	if len(durations) > 0 {
		return Answer{}, fmt.Errorf("%d step durations answered, %d too many", len(m.StepDuration), len(durations))
	}
	return a, nil
}

func profileDurations(p planner.Profile) []int64 {
	all := make([]int64, len(p))
	for i, s := range p {
		all[i] = s.Duration
	}
	return all
}

// clean makes a plugin's text safe for logs and terminals: one line of at most limit bytes, without
// control characters.
func clean(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
}

// Clean makes a plugin's text safe for logs and terminals: one line of at most limit bytes, without
// control characters.
func Clean(text string, limit int) string { return clean(text, limit) }

func encodeDefinition(d Definition) *pb.DescribeResponse {
	m := &pb.DescribeResponse{Name: d.Name, Version: d.Version, Help: d.Help}
	for _, p := range d.Parameters {
		m.Parameters = append(m.Parameters, &pb.Parameter{Name: p.Name, Type: pb.Type(p.Type), Default: p.Default, Help: p.Help,
			Min: p.Min, Max: p.Max, Choices: p.Choices})
	}
	return m
}

func decodeDescription(m *pb.DescribeResponse) (Description, error) {
	d := Description{Definition: Definition{Name: m.Name, Version: clean(m.Version, 100), Help: cleanLines(m.Help)},
		ExpandLimit: planner.ExpandLimit(m.ExpandLimit), Rigid: m.Rigid, Moldable: m.Moldable, NodeSets: m.NodeSets, Plans: !m.NoPlan, Resizes: m.Resizes}
	if !d.Plans && !d.Resizes {
		return Description{}, errors.New("it neither plans nor resizes jobs")
	}
	for _, p := range m.Parameters {
		if p == nil {
			return Description{}, errors.New("an empty parameter")
		}
		d.Parameters = append(d.Parameters, Parameter{Name: p.Name, Type: Type(p.Type), Default: p.Default, Help: clean(p.Help, maxText),
			Min: p.Min, Max: p.Max, Choices: slices.Clone(p.Choices)})
	}
	if err := d.Validate(); err != nil {
		return Description{}, errors.New(clean(err.Error(), 500))
	}
	if d.ExpandLimit != 0 {
		if err := d.ExpandLimit.Validate(); err != nil {
			return Description{}, fmt.Errorf("its expand limit: %w", err)
		}
	}
	return d, nil
}

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clean(lines[i], maxText)
	}
	return strings.Join(lines, "\n")
}
