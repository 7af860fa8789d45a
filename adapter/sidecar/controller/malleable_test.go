package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// listen accepts everything that a job is offered or asked for, as its application would, until
// stop is called.
func (l *lab) listen(id uint32) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for known := int64(0); ctx.Err() == nil; {
			o, err := l.Offer(ctx, id, api.OfferQuery{After: known})
			if err != nil || !o.Ready {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			known = o.ID
			a, err := l.Answer(ctx, id, api.AnswerRequest{Offer: o.ID, Accept: o.Nodes})
			if err != nil && ctx.Err() == nil && !errors.Is(err, api.ErrConflict) {
				l.t.Errorf("offer %d to job %d: %+v, %v", o.ID, id, a, err)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// sizes waits until jobs have that many nodes, according to the sidecar and to Slurm.
func (l *lab) sizes(want map[uint32]int) {
	l.t.Helper()
	for id, nodes := range want {
		l.eventually(fmt.Sprintf("job %d on %d nodes", id, nodes), func() error {
			a, err := l.Allocation(l.ctx(), id)
			if err != nil {
				return err
			}
			var ids []uint32
			for _, p := range a.Parts {
				ids = append(ids, p.Job)
			}
			if got := l.slurmNodes(ids...); a.Nodes != nodes || got != nodes {
				return fmt.Errorf("it has %d by the sidecar and %d by Slurm", a.Nodes, got)
			}
			return nil
		})
	}
}

// TestMalleable lets two malleable jobs grow over free nodes and give way to stock jobs as the
// policy says, with both ways to grow. A job that does not answer is shrunk, and a restarted
// sidecar knows what is lent.
func TestMalleable(t *testing.T) {
	t.Parallel()
	dir := plugins(t)
	for drive, policy := range map[drivemode.Mode]string{drivemode.Merge: "fpsma", drivemode.Companion: "egs"} {
		t.Run(string(drive), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) {
				c.Strategies.Dir, c.Malleable.Policy = dir, policy
			})
			submit := func(most int) uint32 {
				return l.submitSpec(request.Request{Drive: drive, Malleable: &request.Malleable{Max: []int{most}, Grace: 20}}, "1@20m")
			}
			first := submit(5)
			l.running(first, 1)
			second := submit(3)
			l.running(second, 1)
			stops := []func(){l.listen(first), l.listen(second)}
			l.sizes(map[uint32]int{first: 5, second: 3})

			stock := func(nodes int) (id uint32) {
				began := time.Now()
				id = l.sbatch(1, fmt.Sprintf("--nodes=%d", nodes), "--exclusive", "--time=5")
				l.eventually("the stock job runs", func() error {
					if r, err := l.record(id); err != nil || r.State != slurmctl.Running {
						return fmt.Errorf("%s %s (%v)", r.State, r.Reason, err)
					}
					return nil
				})
				l.t.Logf("a stock job of %d nodes began after %v", nodes, time.Since(began).Round(10*time.Millisecond))
				return id
			}
			one := stock(2)
			if drive == drivemode.Merge { // FPSMA: the one that started last gives
				l.sizes(map[uint32]int{first: 5, second: 1})
			} else { // EGS: both
				l.sizes(map[uint32]int{first: 4, second: 2})
			}
			l.cancelStock(1, one)
			l.sizes(map[uint32]int{first: 5, second: 3})

			if drive == drivemode.Merge { // another policy, a plugin, while they run: both lose least by equal sizes
				s, err := l.UseStrategy(l.ctx(), api.Resizing, "gain", api.StrategyRequest{}, "tester")
				if err != nil || s.Kind != "plugin" || !s.InUse {
					t.Fatalf("gain: %+v, %v", s, err)
				}
				one = stock(2)
				l.sizes(map[uint32]int{first: 3, second: 3})
				l.cancelStock(1, one)
				l.sizes(map[uint32]int{first: 5, second: 3})
				all, err := l.Strategies(l.ctx(), api.Resizing)
				if i := slices.IndexFunc(all, func(s api.Strategy) bool { return s.Name == "gain" }); err != nil || i < 0 || all[i].Plans == 0 || all[i].Fallen > 0 {
					t.Errorf("%+v, %v", all, err)
				}
			}
			if p, err := l.Progress(l.ctx(), first, api.ProgressReport{Fraction: .4}); err != nil || p.Fraction != .4 {
				t.Errorf("progress: %+v, %v", p, err)
			}
			for _, stop := range stops { // no application answers any more
				stop()
			}
			l.stop()
			l.start()
			l.eventually("progress is known still", func() error {
				if _, err := l.Progress(l.ctx(), first, api.ProgressReport{Fraction: .3}); !errors.Is(err, api.ErrInvalid) {
					return fmt.Errorf("progress that falls: %w", err)
				}
				return nil
			})
			two := stock(6)
			l.sizes(map[uint32]int{first: 1, second: 1})
			for _, id := range []uint32{first, second} {
				job := l.running(id, 1)
				if o := job.Offers[len(job.Offers)-1]; !o.Mandatory || !o.Enforced || o.State != "done" {
					t.Errorf("job %d: %+v", id, o)
				}
				l.cancel(id)
			}
			l.cancelStock(1, two)
			l.ended(first)
			l.ended(second)
			l.clean()
		})
	}
}

// TestPromise lets a job promise to give nodes back, in both drive modes. It says nothing more, so the sidecar demands
// them in time, and takes them.
func TestPromise(t *testing.T) {
	t.Parallel()
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		t.Run(string(drive), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(*config.Config) {})
			id := l.submitSpec(request.Request{Drive: drive, Malleable: &request.Malleable{Max: []int{3}, Grace: 5}}, "1@20m")
			l.running(id, 1)
			var o api.Offer
			l.eventually("an offer", func() (err error) {
				if o, err = l.Offer(l.ctx(), id, api.OfferQuery{}); err == nil && !o.Ready {
					err = errors.New("none")
				}
				return err
			})
			if _, err := l.Answer(l.ctx(), id, api.AnswerRequest{Offer: o.ID, Accept: 2, Until: time.Now().Add(time.Second)}); !errors.Is(err, api.ErrInvalid) {
				t.Errorf("a promise that cannot be kept: %v", err)
			}
			back := time.Now().Add(30 * time.Second)
			if _, err := l.Answer(l.ctx(), id, api.AnswerRequest{Offer: o.ID, Accept: 2, Until: back}); err != nil {
				t.Fatal(err)
			}
			l.sizes(map[uint32]int{id: 3})
			l.sizes(map[uint32]int{id: 1})
			j, err := l.Job(l.ctx(), id)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(j.Offers, func(o api.Offer) bool { return o.Mandatory })
			if i < 0 || !j.Offers[i].Enforced || j.Offers[i].Deadline.After(back) || j.Offers[0].Back.Unix() != back.Unix() {
				t.Errorf("offers: %+v", j.Offers)
			}
		})
	}
}
