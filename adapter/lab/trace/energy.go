package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
)

// SWF has no field for energy. Georgiou's thesis (2010, section 6.5) proposes one more value for each job. It is field 19 of
// traces with the line "; EnergyField: 19" in the header, in joules, -1 if unknown. Other readers skip it.
const energyKey, energyValue = "EnergyField", "19 (joules)"

// HasEnergy reports whether a trace has jobs' energy.
func (h *Header) HasEnergy() bool {
	for _, l := range h.Lines {
		key, value, _ := strings.Cut(l, ":")
		if field, _, _ := strings.Cut(strings.TrimSpace(value), " "); strings.TrimSpace(key) == energyKey && field == "19" {
			return true
		}
	}
	return false
}

// joules returns the energy of a job of a trace that has it; -1 if unknown.
func (j *Job) joules() float64 {
	first, _, _ := strings.Cut(strings.ReplaceAll(j.More, "\t", " "), " ")
	x, ok := parse([]byte(first))
	if !ok || x < 0 || x > mostNumber || math.IsNaN(x) {
		return -1
	}
	return x
}

// Meter gives the jobs of a trace their energy.
type Meter struct {
	busy    float64 // watts of a node with a job
	perNode float64 // processors
	had     bool    // the trace had energy, which is replaced
}

// NewMeter returns a meter for the trace with this header, which it changes.
func NewMeter(h *Header, w energy.Watts) *Meter {
	m := &Meter{busy: w[energy.Busy], perNode: 1, had: h.HasEnergy()}
	if h.Nodes > 0 && h.Processors > h.Nodes {
		m.perNode = float64(h.Processors) / float64(h.Nodes)
	}
	h.Set(energyKey, energyValue)
	return m
}

// Add gives a job that ran the energy of the nodes that its processors fill, as if it had each of them alone.
func (m *Meter) Add(j *Job) error {
	rest := j.More
	if m.had {
		_, rest, _ = strings.Cut(rest, " ")
	} else if rest != "" {
		return fmt.Errorf("job %d has a field 19 of another meaning, %.40q: energy has no place", j.Number, rest)
	}
	text := "-1"
	if j.Ran() {
		nodes := math.Ceil(float64(j.Size()) / m.perNode)
		text = strconv.FormatFloat(min(math.Round(m.busy*nodes*j.Run), mostNumber), 'f', 0, 64)
	}
	j.More = strings.TrimRight(text+" "+rest, " ")
	return nil
}
