package slurmctl

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hostile lists texts that must not reach a command as a name.
var hostile = []string{"--uid=0", "-v", "a b", "a=b", "a\nb", "a\x00b", "a'b", `a"b`, "a;b", "$(id)", "", " ", "ä", "a\tb",
	strings.Repeat("a", 5000)}

func TestNothingBecomesAnOption(t *testing.T) {
	c := &Client{Dir: t.TempDir()} // folder without commands: running one would return another kind of error
	ctx := t.Context()
	now := time.Now()
	for _, bad := range hostile {
		valid := func() AllocateRequest { return AllocateRequest{Nodes: 1, Name: "x"} }
		alloc := func(set func(*AllocateRequest)) func() error {
			return func() error {
				q := valid()
				set(&q)
				_, err := c.Allocate(ctx, q)
				return err
			}
		}
		resv := func(set func(*ReservationRequest)) func() error {
			return func() error {
				q := ReservationRequest{Name: "r", End: now.Add(time.Hour), NodeCount: 1, Users: []string{"u"}}
				set(&q)
				return c.CreateReservation(ctx, q)
			}
		}
		uses := map[string]func() error{
			"node to keep":      func() error { return c.Shrink(ctx, 1, []string{"n1", bad}) },
			"signal":            func() error { _, err := c.Signal(ctx, bad, SignalOptions{}, 1); return err },
			"deleted":           func() error { return c.DeleteReservation(ctx, bad) },
			"updated":           func() error { return c.UpdateReservation(ctx, bad, ReservationUpdate{NodeCount: 1}) },
			"salloc node":       alloc(func(q *AllocateRequest) { q.NodeList = []string{bad} }),
			"salloc exclude":    alloc(func(q *AllocateRequest) { q.Exclude = []string{"n1", bad} }),
			"reservation name":  resv(func(q *ReservationRequest) { q.Name = bad }),
			"reservation node":  resv(func(q *ReservationRequest) { q.NodeCount, q.Nodes = 0, []string{bad} }),
			"reservation user":  resv(func(q *ReservationRequest) { q.Users = []string{bad} }),
			"reservation users": resv(func(q *ReservationRequest) { q.Accounts = []string{"a", bad} }),
			"reservation flag":  resv(func(q *ReservationRequest) { q.Flags = []string{bad} }),
		}
		if bad != "" { // the empty string means "not given" here
			uses["partition"] = alloc(func(q *AllocateRequest) { q.Partition = bad })
			uses["GRES"] = alloc(func(q *AllocateRequest) { q.GRES = []GRES{{Name: bad, Count: 1}} })
			uses["account"] = alloc(func(q *AllocateRequest) { q.Account = bad })
			uses["QOS"] = alloc(func(q *AllocateRequest) { q.QOS = bad })
			uses["reservation"] = alloc(func(q *AllocateRequest) { q.Reservation = bad })
			uses["reservation partition"] = resv(func(q *ReservationRequest) { q.Partition = bad })
			uses["job partition"] = func() error { return c.UpdateJob(ctx, 1, JobUpdate{Partition: bad}) }
			uses["job reservation"] = func() error { return c.UpdateJob(ctx, 1, JobUpdate{Reservation: &bad}) }
			uses["dependency"] = func() error { return c.UpdateJob(ctx, 1, JobUpdate{Dependency: &bad}) }
			if bad != "a=b" {
				uses["constraint"] = alloc(func(q *AllocateRequest) { q.Constraint = bad })
			}
		}
		for what, use := range uses {
			if err := use(); err == nil || !strings.Contains(err.Error(), "invalid ") {
				t.Errorf("%s %q: %v", what, oneLine(bad, 20), err)
			}
		}
	}
	if c.Calls() != 0 {
		t.Errorf("%d commands were run", c.Calls())
	}
}

func TestRefusedArguments(t *testing.T) {
	c := &Client{Dir: t.TempDir()}
	ctx := t.Context()
	nul, long := "a\x00b", strings.Repeat("x", 200_000)
	now := time.Now()
	for what, use := range map[string]func() error{
		"comment with NUL":     func() error { return c.UpdateJob(ctx, 1, JobUpdate{Comment: &nul}) },
		"comment too long":     func() error { return c.UpdateJob(ctx, 1, JobUpdate{AdminComment: &long}) },
		"salloc name with NUL": func() error { _, err := c.Allocate(ctx, AllocateRequest{Nodes: 1, Name: nul}); return err },
		"no nodes":             func() error { _, err := c.Allocate(ctx, AllocateRequest{}); return err },
		"negative memory": func() error {
			n := int64(-1)
			_, err := c.Allocate(ctx, AllocateRequest{Nodes: 1, MemoryPerNode: &n})
			return err
		},
		"negative tasks":        func() error { _, err := c.Allocate(ctx, AllocateRequest{Nodes: 1, TasksPerNode: -1}); return err },
		"negative time":         func() error { _, err := c.Allocate(ctx, AllocateRequest{Nodes: 1, TimeLimit: -2}); return err },
		"job 0":                 func() error { return c.Merge(ctx, 0) },
		"cancel job 0":          func() error { return c.Cancel(ctx, 1, 0) },
		"hold job 0":            func() error { return c.Hold(ctx, 0) },
		"script of job 0":       func() error { _, err := c.BatchScript(ctx, 0); return err },
		"no nodes to keep":      func() error { return c.Shrink(ctx, 1, nil) },
		"two start times":       func() error { return c.UpdateJob(ctx, 1, JobUpdate{StartNow: true, StartTime: now}) },
		"limit and end":         func() error { return c.UpdateJob(ctx, 1, JobUpdate{TimeLimit: time.Hour, EndTime: now}) },
		"negative limit":        func() error { return c.UpdateJob(ctx, 1, JobUpdate{TimeLimit: -time.Hour}) },
		"negative nodes":        func() error { return c.UpdateJob(ctx, 1, JobUpdate{NumNodes: -1}) },
		"reservation of no end": func() error { return c.CreateReservation(ctx, ReservationRequest{Name: "a", NodeCount: 1}) },
		"reservation backwards": func() error {
			return c.CreateReservation(ctx, ReservationRequest{Name: "a", Start: now, End: now.Add(-time.Hour), NodeCount: 1})
		},
		"nodes and count": func() error {
			return c.CreateReservation(ctx, ReservationRequest{Name: "a", End: now, Nodes: []string{"n1"}, NodeCount: 1})
		},
		"sbatch with NUL": func() error { _, err := c.Submit(ctx, nil, []string{nul}, nil); return err },
	} {
		if err := use(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if c.Calls() != 0 {
		t.Errorf("%d commands were run", c.Calls())
	}
	if err := c.UpdateJob(ctx, 1, JobUpdate{}); err != nil || c.Calls() != 0 {
		t.Error("an update of nothing runs a command:", err)
	}
	if jobs, err := c.JobsByID(ctx); err != nil || jobs != nil || c.Calls() != 0 {
		t.Error("a look at no jobs runs a command:", err)
	}
}

// TestAllocateArguments checks that every argument is one option of the form --name=value, whatever
// the texts are.
func TestAllocateArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := AllocateRequest{Nodes: rapid.IntRange(1, 99).Draw(t, "nodes"), Partition: rapid.String().Draw(t, "partition"),
			Name: rapid.String().Draw(t, "name"), Comment: rapid.String().Draw(t, "comment"),
			Account: rapid.SampledFrom(append(hostile, "a", "a.b")).Draw(t, "account"), ExpandJob: JobID(rapid.Uint32().Draw(t, "job")),
			NodeList: rapid.SliceOf(nodeName()).Draw(t, "list"), WCKey: rapid.String().Draw(t, "wckey"), Network: rapid.String().Draw(t, "network"),
			MemoryPerCPU: rapid.Int64Range(0, 9).Draw(t, "memory"), GRES: []GRES{{rapid.String().Draw(t, "gres"), rapid.String().Draw(t, "type"), 1}}}
		args, err := q.args()
		if err != nil {
			return
		}
		for _, a := range args[1:] {
			if name, _, ok := strings.Cut(a, "="); !ok || !strings.HasPrefix(name, "--") {
				t.Fatalf("argument %q", a)
			}
		}
	})
}

func TestCancelledContextRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Client{}
	if _, err := c.Jobs(ctx); err == nil || c.Calls() != 0 {
		t.Error(err, c.Calls())
	}
}
