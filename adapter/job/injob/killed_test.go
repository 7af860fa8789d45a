package injob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// rest has the methods that fake lacks and nobody calls.
type rest struct{ api.Backend }

// killed is a sidecar that is killed once, at some point, and returns a little later: what it did
// until then takes effect, but its answers are lost.
type killed struct {
	*fake
	rest
	at      string
	once    sync.Once
	address string // on which it is not to be had while it is dead
	server  string

	mu    sync.Mutex
	front net.Listener
	conns []net.Conn
}

// listen has it be there.
func (k *killed) listen() error {
	l, err := net.Listen("unix", k.address)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.front = l
	k.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("unix", k.server)
			if err != nil {
				conn.Close()
				continue
			}
			k.mu.Lock()
			if k.front != l { // killed meanwhile
				conn.Close()
				behind.Close()
			}
			k.conns = append(k.conns, conn, behind)
			k.mu.Unlock()
			go func() { _, _ = io.Copy(behind, conn); behind.Close() }()
			go func() { _, _ = io.Copy(conn, behind); conn.Close() }()
		}
	}()
	return nil
}

// point is a point at which it may be killed; it reports whether it is killed now.
func (k *killed) point(name string) (now bool) {
	if name != k.at {
		return false
	}
	k.once.Do(func() {
		now = true
		k.mu.Lock()
		k.front.Close()
		k.front = nil
		for _, conn := range k.conns {
			conn.Close()
		}
		k.mu.Unlock()
		time.AfterFunc(300*time.Millisecond, func() {
			if err := k.listen(); err != nil {
				k.t.Error(err)
			}
		})
	})
	return now
}

func (k *killed) Status(context.Context) (api.Status, error)    { return api.Status{}, nil }
func (k *killed) Jobs(context.Context, bool) ([]api.Job, error) { return nil, nil }
func (k *killed) Owner(context.Context, uint32) (uint32, error) { return uint32(os.Getuid()), nil }
func (k *killed) Allocation(ctx context.Context, id uint32) (api.Allocation, error) {
	a, err := k.fake.Allocation(ctx, id)
	k.point(fmt.Sprintf("looking in step %d", a.Step))
	return a, err
}

func (k *killed) Next(ctx context.Context, id uint32, req api.NextRequest) (a api.Allocation, err error) {
	k.fake.mu.Lock()
	has := k.has
	k.fake.mu.Unlock()
	if req.From < has.Step || has.Done { // it has ended already
		return has, nil
	}
	if k.point(fmt.Sprintf("before the end of step %d", req.From)) {
		return a, errors.New("nobody hears this")
	}
	for _, node := range req.Release {
		if on := k.on(); strings.Contains(on, node) {
			k.t.Errorf("%s is given back with something on it: %s", node, on)
		}
	}
	a, err = k.fake.Next(ctx, id, req)
	k.point(fmt.Sprintf("after the end of step %d", req.From))
	return a, err
}

func (k *killed) Answer(ctx context.Context, id uint32, req api.AnswerRequest) (api.Answer, error) {
	k.fake.mu.Lock()
	has, said := k.has, len(k.said)
	k.fake.mu.Unlock()
	if said > 0 {
		return api.Answer{Ready: true, Has: &has}, nil
	}
	a, err := k.fake.Answer(ctx, id, req)
	k.point("after the answer")
	return a, err
}

// TestFollowKilled checks that a follower waits for a sidecar that is killed in any phase. Nothing
// is started, ended, or given back twice, and no node is given back with a process on it.
func TestFollowKilled(t *testing.T) {
	for _, at := range []string{
		"the start", "looking in step 1", "before the end of step 1", "after the end of step 1", "the drain",
		"looking in step 2", "before the end of step 2", "after the end of step 2", "looking in step 3", "before the end of step 3", "after the end of step 3",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			begin := time.Now().Add(2 * time.Second)
			f := &fake{
				has: allocation(1, &api.Coming{Step: 2, Nodes: 3, At: begin, Arriving: []string{"n2", "n3"}}, "n1"),
				next: []api.Allocation{
					allocation(2, &api.Coming{Step: 3, Nodes: 1, At: begin.Add(3 * time.Second), Leaving: []string{"n2", "n3"}}, "n1", "n2", "n3"),
					allocation(3, &api.Coming{Step: 4, Nodes: 1}, "n1"),
					{Ready: true, Done: true, Job: 12, Step: 9, Steps: 9},
				},
			}
			k, client := killable(t, f, at)
			_, _, end := followingBy(t, f, client, "--follow", "--drain-time=1m", "--drain=echo drain $EVO_NODE", "sh", "-c", worker)
			k.point("the start")
			go func() {
				for !strings.Contains(f.out.String(), "drain n") && t.Context().Err() == nil {
					time.Sleep(10 * time.Millisecond)
				}
				k.point("the drain")
			}()
			status := end()
			if got := fmt.Sprint(f.asked); got != "[{1 []} {2 [n2 n3]} {3 []}]" || status != 0 {
				t.Errorf("asked for %s, status %d", got, status)
			}
			if out := f.out.String(); f.launched() != 3 || strings.Count(out, "drain n") != 3 || strings.Contains(out, "evosrun:") {
				t.Errorf("it printed\n%s", out)
			}
		})
	}
	for _, at := range []string{"the offer", "after the answer"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			f := &fake{has: allocation(1, nil, "n1", "n2"), by: func(api.AnswerRequest) api.Allocation { return allocation(1, nil, "n1") }}
			k, client := killable(t, f, at)
			_, _, end := followingBy(t, f, client, "--follow", "--restart=never", "--drain-time=1m", "sh", "-c", `trap 'exit 0' TERM; [ $EVO_NODE = n2 ] || { while [ ! -e $STEPS/over ]; do sleep .05; done; exit; }; while :; do sleep 0.05; done`)
			f.eventually("two run", func() bool { return f.on() == "n1 n2" })
			k.point("the offer")
			f.mu.Lock()
			f.offer = []api.Offer{{ID: 1, Ready: true, Kind: "shrink", Nodes: 1, NodeList: "n2", Mandatory: true, Deadline: time.Now().Add(time.Hour)}}
			f.mu.Unlock()
			f.eventually("it is given back", func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return fmt.Sprint(f.said) == "[{1 1}]"
			})
			f.eventually("one runs", func() bool { return f.on() == "n1" })
			must.OK(t, os.WriteFile(f.dir+"/over", nil, 0o600))
			if status := end(); status != 0 || strings.Contains(f.out.String(), "evosrun:") {
				t.Errorf("status %d; it printed\n%s", status, f.out.String())
			}
		})
	}
}

// killable returns a sidecar that is killed at a point, and a client of it.
func killable(t *testing.T, f *fake, at string) (*killed, *api.Client) {
	t.Helper()
	dir, err := os.MkdirTemp("", "evo") // a socket's path is short
	must.OK(t, err)
	f.t = t
	k := &killed{fake: f, at: at, address: filepath.Join(dir, "s"), server: filepath.Join(dir, "b")}
	log := logrus.New()
	log.SetOutput(io.Discard)
	srv := &api.Server{Backend: k, Log: log, Socket: k.server, Reading: func() api.Reading { return api.Anybody }}
	must.OK(t, srv.Listen())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	must.OK(t, k.listen())
	t.Cleanup(func() {
		cancel()
		<-served
		os.RemoveAll(dir)
		k.once.Do(func() { t.Error("it was never killed") })
	})
	client, err := api.NewClient("unix://"+k.address, api.Munge{})
	must.OK(t, err)
	return k, client
}
