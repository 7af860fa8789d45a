package bag

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// leftQuantile is how long a task is expected to take, among those that have ended.
const leftQuantile = 0.75

// Summary says how a bag stands.
type Summary struct {
	Tasks       int       `json:"tasks"`
	Done        int       `json:"done"`
	Running     int       `json:"running"`
	Waiting     int       `json:"waiting"`
	Failed      int       `json:"failed"`
	Saved       int       `json:"checkpointed"` // of those that wait
	Voids       int       `json:"unreadable_checkpoints"`
	Slots       int       `json:"slots"`                  // how many tasks may run at once
	TaskSeconds *float64  `json:"task_seconds,omitempty"` // three of four tasks that ended took at most this
	LeftSeconds *float64  `json:"left_seconds,omitempty"` // nil: unknown
	Updated     time.Time `json:"updated,omitzero"`       // last record
	Failures    []Failure `json:"failures,omitempty"`     // with --failed

	Late      int              `json:"late,omitempty"`      // ends that did not count: the tasks had been leased again
	Collected string           `json:"collected,omitempty"` // how the command that collects stands; "": there is none
	Clusters  []ClusterSummary `json:"clusters,omitempty"`  // of a campaign
}

// Summary returns how the bag stands at a time.
func (s *State) Summary(now time.Time) Summary {
	m := Summary{Tasks: len(s.tasks), Done: s.done, Failed: s.failed, Running: len(s.leases), Voids: s.voids, Slots: s.Slots,
		Late: s.late, Collected: s.collected, Clusters: s.clusters(now)}
	m.Waiting = s.waiting()
	for _, t := range s.tasks {
		if t.phase == waiting && t.saved {
			m.Saved++
		}
	}
	if s.Last > 0 {
		m.Updated = time.Unix(s.Last, 0)
	}
	d, ok := s.Quantile(leftQuantile)
	if !ok {
		return m
	}
	each := d.Seconds()
	m.TaskSeconds = &each
	if m.Waiting+m.Running == 0 {
		m.LeftSeconds = new(float64)
		return m
	}
	if m.Slots == 0 {
		return m
	}
	work, longest := float64(m.Waiting)*each, 0.0
	for _, l := range s.leases {
		left := max(each-float64(now.Unix()-l.At), 0)
		work, longest = work+left, max(longest, left)
	}
	if m.Waiting > 0 {
		longest = max(longest, each)
	}
	left := math.Ceil(max(work/float64(m.Slots), longest))
	m.LeftSeconds = &left
	return m
}

const barWidth = 40

// Bar draws how many tasks have ended.
func (s Summary) Bar() string {
	ended := s.Done + s.Failed
	full := ended * barWidth / max(s.Tasks, 1)
	return fmt.Sprintf("[%s%s] %.1f%%", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), float64(ended)/float64(max(s.Tasks, 1))*100)
}

// Failure is a task that failed.
type Failure struct {
	ID     int    `json:"id"`
	Task   string `json:"task,omitempty"` // its text
	Status int    `json:"status"`
	Signal int    `json:"signal,omitempty"`
	Reason string `json:"reason"`
}

// Failures returns the tasks that failed, in order.
func (s *State) Failures() []Failure {
	all := []Failure{}
	for i, t := range s.tasks {
		if t.phase != failed {
			continue
		}
		f := Failure{ID: s.ID(i), Status: int(t.status), Signal: int(t.signal), Reason: reason(int(t.status), int(t.signal), s.whys[i])}
		f.Reason = legible.Printable(f.Reason, false)
		if s.Sum != "" {
			f.Task = legible.Cut(legible.Printable(string(s.Text(i)), false), 200, "…")
		}
		all = append(all, f)
	}
	return all
}

// ReadTexts adds the texts of the tasks to a state that was read, if the folder has them.
func (s *State) ReadTexts(dir string) {
	text, err := readBounded(filepath.Join(dir, tasksFile), MostBytes)
	if err != nil {
		return
	}
	if l, err := lines(text); err == nil && l.Tasks == s.Tasks {
		s.text, s.ends = l.text, l.ends
	}
}

// quantile returns the value that a fraction q of sorted values does not exceed.
func quantile(sorted []float32, q float64) float32 {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}
