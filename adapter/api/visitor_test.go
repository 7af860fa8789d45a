package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// surveyed is a fakeBackend with a cluster: job 20 is the owner's, 21 belongs to another user in
// account proj, 22 to a third; there is a hold for each of 12 and 13, and a reservation of the
// site.
type surveyed struct{ *fakeBackend }

func (b surveyed) Cluster(context.Context) (*Cluster, error) {
	return &Cluster{Taken: time.Unix(1000, 0), Nodes: []Node{{Name: "n1"}}, Others: []OtherJob{
		{ID: 20, Name: "mine", UID: b.owner, Account: "x", NodeList: "n1"},
		{ID: 21, Name: "ours", UID: b.owner + 1, Account: "proj", NodeList: "n2"},
		{ID: 22, Name: "theirs", User: "them", UID: b.owner + 2, Account: "secret", Start: time.Unix(1, 0), End: time.Unix(2000, 0), NodeList: "n3"}},
		Reservations: []Reservation{{Name: "evo_12_2_1", Hold: true, Job: 12, UID: b.owner}, {Name: "evo_13_2_1", Hold: true, Job: 13, UID: b.owner + 1}, {Name: "maint"}}}, b.find(12)
}

func (b surveyed) UseStrategy(context.Context, StrategyKind, string, StrategyRequest, string) (Strategy, error) {
	return Strategy{}, Errorf(ErrNotFound, "there is none")
}

// TestVisitorReads checks that each visitor reads only what it may, as over HTTP.
func TestVisitorReads(t *testing.T) {
	const owner = 4000
	coordinator, other, owns := uint32(owner+5), uint32(owner+9), uint32(owner)
	root := uint32(0)
	for name, c := range map[string]struct {
		reading Reading
		uid     *uint32
		jobs    int // evolving ones
		others  string
		holds   int
		events  int
		job     error
	}{
		"own jobs, their owner":          {OwnJobs, &owns, 2, "mine  ", 2, 1, nil},
		"own jobs, a coordinator":        {OwnJobs, &coordinator, 2, " ours ", 1, 0, nil},
		"own jobs, somebody":             {OwnJobs, &other, 0, "  ", 1, 0, ErrNotFound},
		"own jobs, root":                 {OwnJobs, &root, 3, "mine ours theirs", 3, 3, nil},
		"all jobs, somebody":             {AllJobs, &other, 3, "mine ours theirs", 3, 2, nil},
		"all jobs, nobody in particular": {AllJobs, nil, -1, "", 0, 0, ErrDenied},
		"anybody":                        {Anybody, nil, 3, "mine ours theirs", 3, 2, nil},
	} {
		s := &Server{Backend: surveyed{newBackend(owner)}, Log: logrus.New(), Reading: func() Reading { return c.reading },
			Sees: func(_ context.Context, uid uint32) func(string) bool {
				return func(account string) bool { return uid == coordinator && account == "proj" }
			}}
		v, ctx := s.Visitor(c.uid), t.Context()
		jobs, err := v.Jobs(ctx, true)
		if all := c.jobs == 3; all != (v.Sees(ctx) == "everything") || !all && v.Sees(ctx) != v.Who() {
			t.Errorf("%s sees %q", name, v.Sees(ctx))
		}
		if c.jobs < 0 {
			_, err2 := v.Cluster(ctx)
			_, err3 := v.Status(ctx)
			_, err4 := v.Strategies(ctx)
			for _, err := range []error{err, err2, err3, err4} {
				if !errors.Is(err, ErrDenied) {
					t.Errorf("%s: %v", name, err)
				}
			}
			continue
		}
		if err != nil || len(jobs) != c.jobs && !(name == "own jobs, a coordinator") {
			t.Errorf("%s: %d jobs, %v", name, len(jobs), err)
		}
		a, err := v.Cluster(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range a.Others {
			names = append(names, o.Name)
			if o.Name == "" && (o != OtherJob{Start: a.Taken, NodeList: o.NodeList} || o.NodeList == "") {
				t.Errorf("%s reads %+v", name, o)
			}
		}
		if got := strings.Join(names, " "); got != c.others {
			t.Errorf("%s: other jobs %q, want %q", name, got, c.others)
		}
		if len(a.Reservations) != c.holds {
			t.Errorf("%s: reservations %+v", name, a.Reservations)
		}
		if _, err := v.Job(ctx, 12); !errors.Is(err, c.job) {
			t.Errorf("%s: job 12: %v", name, err)
		}
		if events, err := v.Events(ctx, EventQuery{}); err != nil || len(events) != c.events {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
		if _, err := v.UseStrategy(ctx, "noX", StrategyRequest{}); c.uid != &root && !errors.Is(err, ErrForbidden) && !errors.Is(err, ErrDenied) {
			t.Errorf("%s uses a strategy: %v", name, err)
		}
	}
}

// TestSight checks that each caller sees the nodes and reservations that Slurm shows it, and that
// counts agree.
func TestSight(t *testing.T) {
	const owner = 4000
	uid, root := uint32(owner), uint32(0)
	whole := Cluster{Nodes: []Node{{Name: "n1", Partitions: []string{"open", "secret"}}, {Name: "n2", Partitions: []string{"secret"}}, {Name: "n3"}},
		Reservations: []Reservation{{Name: "mine", Users: []string{"me"}}, {Name: "other"}, {Name: "evo_9_2_1", Hold: true, UID: owner + 1}}}
	open := func(name string) bool { return name == "open" }
	mine := func(r Reservation) bool { return r.Name == "mine" }
	all := func(Reservation) bool { return true }
	for name, c := range map[string]struct {
		reading Reading
		uid     *uint32
		sight   *Sight
		nodes   string
		count   int // as Status has it
		resv    string
		shared  bool // the page as others see it
	}{
		"nothing is private":        {AllJobs, &uid, nil, "n1[open secret] n2[secret] n3[]", 3, "mine other evo_9_2_1", true},
		"a hidden partition":        {AllJobs, &uid, &Sight{true, open, all}, "n1[open] n3[]", 2, "mine other evo_9_2_1", false},
		"nodes":                     {AllJobs, &uid, &Sight{false, open, all}, "", 0, "mine other evo_9_2_1", false},
		"reservations":              {AllJobs, &uid, &Sight{true, open, mine}, "n1[open] n3[]", 2, "mine", false},
		"jobs, too":                 {OwnJobs, &uid, &Sight{true, open, all}, "n1[open] n3[]", 2, "mine other", false},
		"root sees all":             {OwnJobs, &root, &Sight{false, open, mine}, "n1[open secret] n2[secret] n3[]", 3, "mine other evo_9_2_1", true},
		"everybody is to see all":   {Anybody, nil, &Sight{false, open, mine}, "n1[open secret] n2[secret] n3[]", 3, "mine other evo_9_2_1", true},
		"everybody, and one signed": {Anybody, &uid, &Sight{false, open, mine}, "n1[open secret] n2[secret] n3[]", 3, "mine other evo_9_2_1", true},
	} {
		s := &Server{Backend: told{newBackend(owner), whole}, Log: logrus.New(), Reading: func() Reading { return c.reading },
			Shows: func(context.Context, uint32) *Sight { return c.sight }}
		v := s.Visitor(c.uid)
		a, err := v.Cluster(t.Context())
		is, err2 := v.Status(t.Context())
		if err = errors.Join(err, err2); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var nodes, resv []string
		for _, n := range a.Nodes {
			nodes = append(nodes, fmt.Sprint(n.Name, n.Partitions))
		}
		for _, r := range a.Reservations {
			resv = append(resv, r.Name)
		}
		if strings.Join(nodes, " ") != c.nodes || strings.Join(resv, " ") != c.resv {
			t.Errorf("%s: told of %q, %q", name, nodes, resv)
		}
		if c.sight != nil && is.Nodes != c.count && !c.shared {
			t.Errorf("%s: %d nodes, want %d", name, is.Nodes, c.count)
		}
		if (v.Sees(t.Context()) == "everything") != c.shared {
			t.Errorf("%s sees %q", name, v.Sees(t.Context()))
		}
	}
	if n := whole.Nodes[0].Partitions; len(n) != 2 || n[1] != "secret" {
		t.Errorf("the shared view was changed: %q", n)
	}
}

// told is a fakeBackend that knows this cluster.
type told struct {
	*fakeBackend
	is Cluster
}

func (b told) Cluster(context.Context) (*Cluster, error) { return &b.is, nil }

// TestPage: on the Unix socket the page knows its reader; on TCP there is none.
func TestPage(t *testing.T) {
	s := serve(t, surveyed{newBackend(4000)}, func(s *Server) {
		s.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, err := VisitorOf(r)
			fmt.Fprint(w, v.caller.known, v.caller.uid, err)
		})
	})
	path := strings.TrimPrefix(s.unix, unixPrefix)
	browser := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	for base, want := range map[string]string{"http://sidecar": fmt.Sprint(true, uint32(os.Getuid()), nil), "http://" + s.tcp: "evosctl web"} {
		c := http.DefaultClient
		if base == "http://sidecar" {
			c = &browser
		}
		res, err := c.Get(base + PagePath + "job?id=12")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(text), want) || (res.StatusCode == http.StatusOK) != (c == &browser) {
			t.Errorf("%s: %d %q, %v, want %q", base, res.StatusCode, text, err, want)
		}
	}
	if _, err := VisitorOf(&http.Request{}); !errors.Is(err, ErrDenied) {
		t.Errorf("without anybody: %v", err)
	}
}

// TestPlaceSight checks that an answer about a place tells nothing of partitions and nodes that Slurm does not show the caller.
func TestPlaceSight(t *testing.T) {
	open := func(name string) bool { return name == "open" }
	for name, c := range map[string]struct {
		sight *Sight
		asked string // partitions
		usual string
		want  string // partitions that are asked about, nodes, free ones, or "unfit"
	}{
		"everything is shown":             {nil, "open,secret", "", "open,secret 9/20"},
		"a partition that is not":         {&Sight{Nodes: true, Partition: open}, "open,secret", "", "open 9/20"},
		"only that":                       {&Sight{Nodes: true, Partition: open}, "secret", "", "unfit"},
		"the default is shown":            {&Sight{Nodes: true, Partition: open}, "", "open", " 9/20"},
		"the default is not":              {&Sight{Nodes: true, Partition: open}, "", "secret", "unfit"},
		"no node is: what the job needs":  {&Sight{Partition: open}, "open", "", "open 4/4"},
		"no node, and the default is not": {&Sight{Partition: open}, "", "secret", "unfit"},
	} {
		q := PlacementQuery{Partition: c.asked}
		got := "unfit"
		if c.sight.hide(&q) == "" {
			a := c.sight.placement(Placement{Ready: true, Partition: cmp.Or(q.Partition, c.usual), Nodes: 20, Free: 9, Most: 4})
			if got = fmt.Sprintf("%s %d/%d", q.Partition, a.Free, a.Nodes); a.Unfit != "" {
				got = "unfit"
				if a.Nodes+a.Free > 0 || !a.Start.IsZero() {
					t.Errorf("%s: %+v", name, a)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
