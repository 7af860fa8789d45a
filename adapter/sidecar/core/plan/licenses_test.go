package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestLicenses plans a job that asks for licences beside a job that has some for an hour, on other nodes.
func TestLicenses(t *testing.T) {
	foo := func(count, away int) []slurmctl.LicenseStock {
		return []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: count}, Away: away}}
	}
	const hour = 3600
	for name, c := range map[string]struct {
		asks, has string // licences of the job, and of the running one
		stock     []slurmctl.LicenseStock
		change    func(b *statetest.Bench, running *slurmctl.Job, j *state.Job)
		start     int64 // -1: no plan
		reason    string
	}{
		"it asks for none":    {"", "foo:2", foo(2, 0), nil, 0, ""},
		"they are free":       {"foo:2", "", foo(2, 0), nil, 0, ""},
		"enough are free":     {"foo", "foo:1", foo(2, 0), nil, 0, ""},
		"they are in use":     {"foo:2", "foo:1", foo(2, 0), nil, hour, "1 of 2 foo are free (Licenses), and it asks for 2"},
		"there are too few":   {"foo:3", "", foo(2, 0), nil, -1, "this cluster has 2: ask for fewer"},
		"there are none":      {"foo", "", nil, nil, -1, "this cluster has no licences"},
		"it cannot be read":   {"foo|bar", "", foo(2, 0), nil, -1, "a choice of licences cannot be planned"},
		"others have some":    {"foo:2", "", foo(2, 1), nil, -1, "1 are in use outside of this cluster"},
		"others have enough":  {"foo", "foo", foo(3, 1), nil, 0, ""},
		"spread over parts":   {"foo:2", "foo:2", []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 2}, Spread: true}}, nil, 0, ""},
		"the other completes": {"foo:2", "foo:1", foo(2, 0), func(_ *statetest.Bench, r *slurmctl.Job, _ *state.Job) { r.State = slurmctl.Completing }, 0, ""},
		"the other is suspended": {"foo:2", "foo:1", foo(2, 0), func(_ *statetest.Bench, r *slurmctl.Job, _ *state.Job) { r.State = slurmctl.Suspended }, -1,
			"its licences do not become free"},
		"reserved in half an hour": {"foo:2", "", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			b.Reserve("theirs", 30*time.Minute, time.Hour, 1, 0)
			r := b.Seen.Reservations["theirs"]
			r.Licenses = []slurmctl.License{{Name: "foo", Count: 1}}
			b.Seen.Reservations["theirs"] = r
		}, hour + hour/2, ""},
		"reserved beside it": {"foo", "", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			b.Reserve("theirs", 0, time.Hour, 1, 0)
			r := b.Seen.Reservations["theirs"]
			r.Licenses = []slurmctl.License{{Name: "foo", Count: 1}}
			b.Seen.Reservations["theirs"] = r
		}, 0, ""},
		"a more urgent stock job waits for them": {"foo:2", "foo:1", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			r := b.Stock(3, 9, 1, 10*time.Minute)
			r.Licenses, r.Reason = "foo:2", "Licenses"
		}, hour + 600 + stock.UntilLook, "1 of 2 foo are free"},
		"a more urgent stock job waits elsewhere": {"foo:2", "foo:1", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			b.Partition("other", 5, 6)
			r := b.Stock(3, 9, 1, 10*time.Minute)
			r.Licenses, r.Reason, r.Partition = "foo:2", "Licenses", "other"
		}, hour + 600 + stock.UntilLook, "1 of 2 foo are free"},
		"a less urgent one waits": {"foo:2", "foo:1", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			r := b.Stock(3, 1, 1, 10*time.Minute)
			r.Licenses, r.Reason = "foo:2", "Licenses"
		}, hour, "1 of 2 foo are free"},
		"an evolving job has them until its plan ends": {"foo:2", "", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			j := b.Evolving(4, 9, "1@10m", time.Hour)
			j.Record.Licenses = "foo"
			b.Plans(j, "0-600 n2")
			b.Runs(j, "n2")
		}, 600, "1 of 2 foo are free"},
		"an evolving job is about to start with them": {"foo:2", "", foo(2, 0), func(b *statetest.Bench, _ *slurmctl.Job, _ *state.Job) {
			j := b.Evolving(4, 9, "1@10m", time.Hour)
			j.Record.Licenses, j.State = "foo", row.Starting
			b.Plans(j, "0-600 n2")
		}, 600, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 6)
			if strings.Contains(name, "elsewhere") { // the job cannot have nodes 5 and 6
				b.Partition("main", 1, 4)
			}
			running := b.StockRuns(1, "n1", time.Hour)
			running.Licenses = c.has
			j := b.Evolving(2, 5, "2@5m,1@5m", time.Hour)
			j.Record.Licenses = c.asks
			if c.change != nil {
				c.change(b, running, j)
			}
			planAll(b)
			if c.asks != "" && !strings.Contains(c.asks, "|") {
				if len(j.Plan) > 0 || j.Reason().Words() != "the licences of the cluster are being read" {
					t.Fatalf("planned before the licences are known: %+v, %q", j.Plan, j.Reason().Words())
				}
				read(b, nil, c.stock)
				planAll(b)
			}
			margin := slurm.Margin(b.Core)
			if c.start < 0 != (len(j.Plan) == 0) || c.start >= 0 && (j.Plan[0].Start < statetest.Second+c.start || j.Plan[0].Start > statetest.Second+c.start+2*max(margin, 1)) {
				t.Errorf("%+v", j.Plan)
			}
			if text := j.Reason().Words(); !strings.Contains(text, c.reason) || c.reason == "" && text != "" {
				t.Errorf("reason %q", text)
			}
		})
	}
}

// TestLicensesRead checks that the licences are read while a job waits for some, once a minute, and planned without if they
// cannot be read.
func TestLicensesRead(t *testing.T) {
	b := statetest.New(t, 4)
	none := b.Evolving(1, 5, "1@5m", time.Hour)
	planAll(b)
	if tasks := b.Tasks(); len(tasks) > 0 || len(none.Plan) == 0 {
		t.Errorf("%v", tasks)
	}
	j := b.Evolving(2, 5, "1@5m", time.Hour)
	j.Record.Licenses = "foo"
	planAll(b)
	planAll(b)
	if tasks := b.Tasks(); len(tasks) != 1 || tasks[0] != (msg.ReadLicenses{}).String() {
		t.Errorf("%v", tasks)
	}
	read(b, nil, []slurmctl.LicenseStock{{License: slurmctl.License{Name: "foo", Count: 1}}})
	b.Later(time.Minute)
	planAll(b)
	if tasks := b.Tasks(); len(tasks) > 0 || len(j.Plan) == 0 {
		t.Errorf("%v, %+v", tasks, j.Plan)
	}
	b.Later(time.Second)
	planAll(b)
	if tasks := b.Tasks(); len(tasks) != 1 || len(j.Plan) == 0 {
		t.Errorf("%v, %+v", tasks, j.Plan)
	}
	read(b, errors.New("scontrol: invalid entity"), nil)
	b.StockRuns(3, "n1", time.Hour).Licenses = "foo"
	planAll(b)
	if len(j.Plan) == 0 || j.Reason().Words() != "" {
		t.Errorf("%+v, %q", j.Plan, j.Reason().Words())
	}
}

// read has the licences of the cluster be read.
func read(b *statetest.Bench, err error, stock []slurmctl.LicenseStock) {
	j, p, o := b.Ends(err, stock)
	slurm.SettleLicenses(b.Core, j, p, o)
}
