package science

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Step holds the work of the case between two changes of its size.
type Step struct {
	Nodes      int
	Iterations int
	Seconds    float64 // that it takes on Nodes, or on more
}

// Poll holds an answer of Slurm.
type Poll struct {
	At      float64 // seconds after the cluster was up
	Case    int     // nodes of the case
	Others  int     // nodes of other jobs
	Waiting int     // other jobs in the queue
}

// Span is a step as it was, in seconds after the cluster was up.
type Span struct{ Begun, Done float64 }

// Cells is the size of the mesh after an iteration.
type Cells struct {
	Iteration int
	Cells     float64
}

// Way is one way to run the case, as it was.
type Way struct {
	Name     string
	Submit   float64
	Spans    []Span // of Steps, as many
	Polls    []Poll
	Mesh     []Cells
	Mass     float64
	Error    float64
	HeldIdle float64 // node-seconds that holds kept idle while other jobs waited, as evosctl report has it
	Later    int     // stock jobs that started later because of holds
	LaterBy  float64 // seconds, all together
	Fixed    bool    // it has the nodes of all steps from its start on
	Counted  bool    // a sidecar counted HeldIdle, Later, and LaterBy
}

// Thin leaves out polls that show what the poll before showed. No figure of a way needs them.
func Thin(polls []Poll) (kept []Poll) {
	for i, p := range polls {
		if i > 0 && i < len(polls)-1 {
			if before := kept[len(kept)-1]; before == (Poll{before.At, p.Case, p.Others, p.Waiting}) {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}

// Result holds what make science found.
type Result struct {
	About  string // the date, the profile, the cluster, the load
	Trials []Trial
}

// Trial is the case on one stream, in all ways.
type Trial struct {
	Seed  uint64
	Nodes int // of the cluster
	Steps []Step
	Ways  []Way
}

// Row holds the figures of a way: seconds, and node-seconds.
type Row struct {
	Before, Inside float64   // waited before the first step, and between steps
	Growths        []float64 // waited at each growth
	Shrinks        []float64 // and at each shrink
	Makespan       float64   // from the submission to the end of the last step
	Had            float64   // node-seconds that the case had
	Needed         float64   // those that its steps need
	Unused         float64   // of the cluster, while other jobs waited, from the submission to the end
	HeldIdle       float64
}

// Row sums up a way.
func (t Trial) Row(w Way) (r Row) {
	last := w.Spans[len(w.Spans)-1].Done
	r.Before, r.Makespan, r.HeldIdle = w.Spans[0].Begun-w.Submit, last-w.Submit, w.HeldIdle
	for i, s := range t.Steps {
		r.Needed += float64(s.Nodes) * s.Seconds
		if i > 0 {
			wait := w.Spans[i].Begun - w.Spans[i-1].Done
			r.Inside += wait
			switch before := t.Steps[i-1].Nodes; {
			case w.Fixed:
			case s.Nodes > before:
				r.Growths = append(r.Growths, wait)
			case s.Nodes < before:
				r.Shrinks = append(r.Shrinks, wait)
			}
		}
	}
	for i, p := range w.Polls[:len(w.Polls)-1] {
		long := min(w.Polls[i+1].At, last) - max(p.At, w.Submit)
		if long <= 0 {
			continue
		}
		r.Had += float64(p.Case) * long
		if p.Waiting > 0 {
			r.Unused += float64(max(t.Nodes-p.Case-p.Others, 0)) * long
		}
	}
	return r
}

// Same reports whether two ways have the same answer: sums over ranks differ by rounding only.
func Same(a, b Way) bool {
	return math.Abs(a.Mass-b.Mass) <= 1e-12 && math.Abs(a.Error-b.Error) <= 1e-12 && a.Mass != 0 && slices.Equal(a.Mesh, b.Mesh)
}

// At returns when the code had done an iteration, if it does them evenly over each step.
func (t Trial) At(w Way, iteration int) float64 {
	done := 0
	for i, s := range t.Steps {
		if iteration <= done+s.Iterations || i == len(t.Steps)-1 {
			return w.Spans[i].Begun + (w.Spans[i].Done-w.Spans[i].Begun)*float64(iteration-done)/float64(s.Iterations)
		}
		done += s.Iterations
	}
	return 0
}

// after returns the index of the step that begins after an iteration, or 0.
func (t Trial) after(iteration int) int {
	done := 0
	for i, s := range t.Steps[:len(t.Steps)-1] {
		if done += s.Iterations; done == iteration {
			return i + 1
		}
	}
	return 0
}

var (
	meshLine = regexp.MustCompile(`(?m)^iteration (\d+): (\d+) cells, `)
	lastLine = regexp.MustCompile(`(?m)^\d+ ranks, iterations \d+ to (\d+) of (\d+): .* cells (\d+), .* mass (\S+), error (\S+)$`)
)

// read adds what the code printed in all of its steps.
func (w *Way) read(printed string) error {
	for _, m := range meshLine.FindAllStringSubmatch(printed, -1) {
		n, _ := strconv.Atoi(m[1])
		cells, _ := strconv.ParseFloat(m[2], 64)
		w.Mesh = append(w.Mesh, Cells{n, cells})
	}
	ends := lastLine.FindAllStringSubmatch(printed, -1)
	if len(ends) == 0 || ends[len(ends)-1][1] != ends[len(ends)-1][2] {
		return fmt.Errorf("%s: the code did not come to its end:\n%s", w.Name, printed)
	}
	end := ends[len(ends)-1]
	w.Mass, _ = strconv.ParseFloat(end[4], 64)
	w.Error, _ = strconv.ParseFloat(end[5], 64)
	return nil
}

// notes adds the spans that the case's scripts noted, lines WHAT STEP UNIX-TIME, and checks that there are as many as steps.
func (w *Way) notes(text string, up float64, steps int) error {
	at := map[string]float64{} // by what, and the step
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return fmt.Errorf("%s: note %q", w.Name, line)
		}
		seconds, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return fmt.Errorf("%s: note %q: %w", w.Name, line, err)
		}
		at[f[0]+" "+f[1]] = seconds - up
	}
	for k := range steps {
		begun, okay := at[fmt.Sprintf("begun %d", k+1)]
		done, also := at[fmt.Sprintf("done %d", k+1)]
		if !okay || !also {
			return fmt.Errorf("%s: step %d did not end:\n%s", w.Name, k+1, text)
		}
		w.Spans = append(w.Spans, Span{begun, done})
	}
	return nil
}
