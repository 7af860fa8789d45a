package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/drive"
	"github.com/evoslurm/evoslurm/adapter/sidecar/release"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// off drain, off release [queued=] [as=] [running=], off resume: an operator switches the sidecar off or on. It outlives
// the sidecar. off direct [queued=] [as=]: the same without it. off check: after a release, nothing of ours may be left in Slurm.
func (h *history) off(words []string) error {
	switch first(words) {
	case "check":
		return h.checkOff()
	case "direct":
		return h.direct(words[1:])
	case "resume":
		h.s.Config.Drain = ""
	default:
		d, err := config.Drain(strings.Join(words, " ")).Parse()
		if err != nil || len(words) == 0 {
			return errors.Join(err, errors.New("off drain|release|resume|check"))
		}
		d.By, d.At = "root", h.s.Cluster.Now().Truncate(time.Second)
		h.s.Config.Drain = d.Text()
		h.peaks(d)
	}
	h.calmFrom = max(h.calmFrom, h.s.Cluster.Elapsed()+5*time.Minute)
	if h.s.Running() {
		cfg := h.s.Config
		h.s.give(msg.Configuration{Config: &cfg, Strategy: msg.Strategy{ExpandLimit: planner.ExpandLimitOf(h.s.Strategy), Plugin: h.s.Policy != nil}})
	}
	return nil
}

// checkOff checks that everything is released: no hold is left, no parked job, no job with a marker, no companion
// without its job, and no script waits.
func (h *history) checkOff() error {
	reservations, err := h.s.Cluster.Client(admin).Reservations(context.Background())
	if err != nil {
		return err
	}
	queue := h.s.Cluster.Queue()
	for _, r := range reservations {
		if _, ours := core.ParseHold(r); ours && !h.stuck(queue, r.Name) {
			h.blame(fmt.Errorf("everything is released, and hold %s is left", r.Name))
		}
	}
	for _, r := range queue {
		if r.Ended() || r.State == slurmctl.Completing || h.tricks(r) {
			continue
		}
		if base, named := core.ParseExpander(r.Name); named && !runs(queue, base) {
			h.blame(fmt.Errorf("everything is released, and %s (%d) is left", r.Name, r.ID))
		}
		if h.evolving[r.ArrayJobID] && r.Priority > 0 && !h.isReleased(r) {
			h.blame(fmt.Errorf("everything is released, and job %d (%s) is %s until %v with comment %q", r.ID, r.Name, r.State, r.StartTime, r.Comment))
		}
	}
	if n := len(h.s.Waiting); n > 0 {
		h.blame(fmt.Errorf("everything is released, and %d calls wait", n))
	}
	return nil
}

// peaks notes that jobs which begin from now on may do so on the nodes of their largest steps.
func (h *history) peaks(d config.Drained) {
	for _, a := range h.apps {
		if a.PeaksFrom == 0 && d.As == "peak" {
			a.PeaksFrom = h.s.Cluster.Elapsed()
		}
	}
}

// direct releases everything without the sidecar.
func (h *history) direct(words []string) error {
	d, err := config.Drain(strings.Join(append([]string{"release"}, words...), " ")).Parse()
	if err != nil {
		return err
	}
	h.peaks(d)
	client := model{h.s.Cluster.Client(slurmsim.Root)}
	h.s.Cluster.Go(func(*slurmsim.Process) {
		site, err := release.Look(context.Background(), client, "root", true)
		if err != nil {
			h.say("direct: " + err.Error())
			return
		}
		driver := &drive.Driver{Slurm: client, Now: h.s.Cluster.Now, Machine: h.s.Cluster.Now}
		site.Now = h.s.Cluster.Now()
		release.Do(context.Background(), driver, release.Find(site, d), func(t release.Thing) { h.say(t.String()) })
	})
	return nil
}

// stuck reports whether a job runs in a hold and cannot be taken out of it.
func (h *history) stuck(queue []slurmctl.Job, hold string) bool {
	return h.plugin.account && slices.ContainsFunc(queue, func(r slurmctl.Job) bool { return r.Reservation == hold })
}

// runs reports whether a job of the queue has begun and not ended.
func runs(queue []slurmctl.Job, id slurmctl.JobID) bool {
	return slices.ContainsFunc(queue, func(r slurmctl.Job) bool { return r.ID == id && !r.Ended() && r.State != slurmctl.Pending })
}

// isReleased reports whether a job is neither parked nor marked. It may be marked where a site's plugin writes comments
// or refuses updates, and if the sidecar refused it: unless it is parked, it is an ordinary job then.
func (h *history) isReleased(r slurmctl.Job) bool {
	parked := r.State == slurmctl.Pending && r.StartTime.Sub(h.s.Cluster.Now()) > parkedFor/2
	_, marked, _ := request.ParseMarker(r.Comment)
	return !parked && (!marked || h.plugin.overwrites || h.plugin.account || h.plugin.frozen || h.refused(r.ID))
}
