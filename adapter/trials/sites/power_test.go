package sites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// powerConfig has the line that an administrator of a site that saves power adds: the watts of a node. Nothing changes until
// power.mode is act. With max_wait 1h, no node stays awake for jobs that nobody planned.
const powerConfig = "power: {max_wait: 1h, watts: {busy: 350, idle: 200, off: 10, booting: 250}}\n"

var watts = energy.Watts{energy.Busy: 350, energy.Idle: 200, energy.Boot: 250, energy.Shutdown: 200, energy.Off: 10}

// powerMeter looks every second what each node does.
type powerMeter struct {
	mu   sync.Mutex
	took energy.Seconds // node-milliseconds
	up   []string       // nodes that are on, at the last look
}

func (m *powerMeter) run(ctx context.Context, c *slurmtest.Cluster) {
	for last := time.Now(); ctx.Err() == nil; time.Sleep(time.Second) {
		text, err := c.Run(ctx, slurmtest.Root, "sinfo", "-hN", "-p", "compute", "-o", "%N %T")
		if err != nil {
			continue
		}
		took := time.Since(last).Milliseconds()
		last = last.Add(time.Duration(took) * time.Millisecond)
		m.mu.Lock()
		m.up = nil
		for line := range strings.Lines(text) {
			name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
			is := stateOf(state)
			if m.took[is] += took; is == energy.Busy || is == energy.Idle {
				m.up = append(m.up, name)
			}
		}
		m.mu.Unlock()
	}
}

// stateOf reads a state of sinfo.
func stateOf(state string) energy.State {
	switch {
	case strings.HasSuffix(state, "~") || state == "powered_down":
		return energy.Off
	case strings.HasSuffix(state, "%") || state == "powering_down":
		return energy.Shutdown
	case strings.HasSuffix(state, "#") || state == "powering_up":
		return energy.Boot
	case strings.HasPrefix(state, "alloc") || strings.HasPrefix(state, "mix") || strings.HasPrefix(state, "compl"):
		return energy.Busy
	}
	return energy.Idle
}

// evosctl runs it as root, who is an operator.
func (r *trial) evosctl(args ...string) string {
	r.t.Helper()
	text, err := r.Cluster.Run(context.Background(), slurmtest.Root, "env", slices.Concat(r.Env(), []string{r.Bin + "/evosctl"}, args)...)
	if err != nil {
		r.fatalf("evosctl %q: %v %s", args, err, text)
	}
	return text
}

func (r *trial) power() (p api.Power) {
	r.t.Helper()
	r.must(json.Unmarshal([]byte(r.evosctl("power", "--json")), &p))
	return p
}

// saving tries power.mode: act. All nodes are on at first. The plan switches those off that a growth needs only later, and
// they are on when it is due. The energy is that of the nodes' states, looked at every second, by the watts.
func saving(r *trial) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r.evosctl("power", "set", "power.mode=act")
	defer r.evosctl("power", "set", "--configured")
	r.eventually("nodes may go off by plan", patience, func() error {
		if p := r.power(); p.Why != "" {
			return errors.New(p.Why)
		}
		return nil
	})
	_, err := r.Cluster.Run(ctx, slurmtest.Root, "scontrol", "update", "NodeName=n[3-8]", "State=POWER_UP")
	r.must(err)
	m, before := &powerMeter{}, r.power()
	measured := make(chan struct{})
	go func() { defer close(measured); m.run(ctx, r.Cluster) }()
	begun := time.Now()
	j := r.accepted(demand{profile: "1@150s,6@20s,1@5s", has: everywhere("1500", "")})
	r.inStep(j, 1)
	var slept bool
	var up []string
	r.until(j, "the end of step 1", func(s told) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if up = m.up; len(up) < 6 {
			slept = true // with the growth to come
		}
		return len(s.steps) > 0 && !s.steps[0].leave.IsZero()
	})
	if !slept {
		r.errorf("all nodes stayed on while the growth was far away")
	}
	if len(up) < 6 {
		r.errorf("only %s are on when the growth is due", slurmctl.CompressNodes(up))
	}
	r.finish(j)
	said, lasted, after := r.read(j), time.Since(begun), r.power()
	stop()
	<-measured
	for i := range m.took {
		m.took[i] /= 1000
	}
	late := said.steps[1].begin.Sub(said.steps[0].leave)
	if late > bootTime { // as a growth would be that waits for a boot
		r.errorf("the growth came %v after the step before it", late)
	}
	busy := energy.Seconds{energy.Busy: m.took[energy.Busy], energy.Idle: int64(8*lasted.Seconds()) - m.took[energy.Busy]}
	r.now.Text = fmt.Sprintf("growth after %.1f s; %.3f kWh in %.0f s, %.3f if all nodes stay on; node-seconds: %d busy, %d idle, %d booting, %d going off, %d off; by the sidecar %.3f kWh saved, %d boots",
		late.Seconds(), watts.KWh(m.took), lasted.Seconds(), watts.KWh(busy), m.took[energy.Busy], m.took[energy.Idle], m.took[energy.Boot], m.took[energy.Shutdown], m.took[energy.Off],
		after.KWh-before.KWh, after.Boots-before.Boots)
	r.t.Log(r.now.Text)
	if watts.KWh(m.took) >= watts.KWh(busy) {
		r.errorf("nothing is saved")
	}
}
