package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// elastiSpeed is the default speed of an ElastiSim node.
const elastiSpeed = 1e12

// elastiSource reads ElastiSim's jobs. How long they take is the matter of an application model
// beside them; taken is the one of its example: iterations of flops / n^alpha on each of n nodes
// (alpha .8 where a job has none), without communication and input and output.
type elastiSource struct {
	rawJobs
	speed    float64
	evolving int
}

func (s *elastiSource) next(*Header) (Job, string, error) {
	text, at, ok := s.take()
	if !ok {
		return Job{}, "", io.EOF
	}
	bad := func(field, format string, args ...any) (Job, string, error) {
		return Job{}, at, &Fault{at, field, fmt.Errorf(format, args...)}
	}
	var e struct {
		Type      string                     `json:"type"`
		Submit    *float64                   `json:"submit_time"`
		Limit     float64                    `json:"walltime"`
		Nodes     int                        `json:"num_nodes"`
		Min       int                        `json:"num_nodes_min"`
		Max       int                        `json:"num_nodes_max"`
		Arguments map[string]json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return bad("", "%w", wrongType(err))
	}
	argument := func(name string, otherwise float64) (float64, error) {
		text, ok := e.Arguments[name]
		if !ok && otherwise > 0 {
			return otherwise, nil
		}
		var x float64
		if !ok || json.Unmarshal(text, &x) != nil || !(x > 0) {
			return 0, &Fault{at, "arguments." + name, errors.New("must be a number above 0: the run time is iterations × flops / nodes^alpha")}
		}
		return x, nil
	}
	iterations, err := argument("iterations", 0)
	if err != nil {
		return Job{}, at, err
	}
	flops, err := argument("flops", 0)
	if err != nil {
		return Job{}, at, err
	}
	alpha, err := argument("alpha", .8)
	if err != nil {
		return Job{}, at, err
	}
	speed := s.speed
	if speed <= 0 {
		speed = elastiSpeed
	}
	seconds := func(n int) float64 {
		return math.Max(math.Ceil(iterations*flops/speed/math.Pow(float64(n), alpha)-1e-6), 1)
	}
	if e.Type == "rigid" {
		e.Min, e.Max = e.Nodes, e.Nodes
	}
	switch {
	case e.Submit == nil:
		return bad("submit_time", "is missing")
	case !(*e.Submit >= 0):
		return bad("submit_time", "%v is negative", *e.Submit)
	case e.Limit < 0 && e.Limit != -1:
		return bad("walltime", "%v; want seconds, or -1 for none", e.Limit)
	case e.Type == "rigid" && e.Nodes < 1:
		return bad("num_nodes", "%d; want at least 1", e.Nodes)
	case e.Min < 1 || e.Max < e.Min || e.Max > planner.MaxNodes:
		return bad("num_nodes_min, num_nodes_max", "%d … %d; must rise from 1", e.Min, e.Max)
	case !(math.Pow(float64(e.Max), alpha) <= 1e15):
		return bad("arguments.alpha", "%v: %d nodes are too many times as fast as one", alpha, e.Max)
	case !(seconds(e.Min) <= planner.MaxDuration):
		return bad("arguments", "it takes more than %d seconds", planner.MaxDuration)
	}
	j := Unknown
	j.Number, j.Submit, j.Run, j.Wanted = int64(s.n), *e.Submit, seconds(e.Max), int64(e.Max)
	if e.Limit > 0 {
		j.Limit = e.Limit
	}
	step := func(n int) planner.Profile { return planner.Profile{{Duration: int64(seconds(n)), Nodes: n}} }
	switch e.Type {
	case "rigid":
	case "moldable":
		j.Shape = &Shape{Kind: Moldable, Profile: step(e.Max)}
		for n := e.Min; n < e.Max; n *= 2 {
			j.Shape.Alternatives = append(j.Shape.Alternatives, step(n))
		}
		if j.Shape.Alternatives == nil {
			j.Shape = nil
		}
	case "evolving", "adaptive":
		s.evolving++
		fallthrough
	case "malleable":
		var up malleable.Table // straight between powers of two
		for n := e.Min; ; n = min(2*n, e.Max) {
			up = append(up, malleable.Point{Nodes: n, Speedup: math.Round(1e4*math.Pow(float64(n), alpha)) / 1e4})
			if n == e.Max {
				break
			}
		}
		j.Shape = &Shape{Kind: Malleable, Profile: step(e.Max), Min: e.Min, Max: e.Max, Speedup: up}
	default:
		return bad("type", "%q is not one of rigid, moldable, malleable, evolving, adaptive", e.Type)
	}
	return j, at, nil
}

func (s *elastiSource) notes() []string {
	if s.evolving == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d evolving or adaptive jobs do not declare their sizes: they are taken as malleable ones", s.evolving)}
}
