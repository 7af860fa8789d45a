package lend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/mode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// lends returns a bench of eight nodes with job 1, which may have two to six nodes, runs on n1 and n2, and has a second
// step with as many. What it is lent comes back within 35 s: a grace of 30 s, and the time until that is seen.
func lends(t *testing.T) (*statetest.Bench, *state.Job) {
	b := statetest.New(t, 8)
	b.Config.Margin, b.Config.PollInterval = 0, 0
	j := b.Evolving(1, 1, "2@1h,2@1h", 3*time.Hour)
	j.Malleable = &row.Malleable{Max: []int{6, 6}}
	b.Runs(j, "n[1-2]")
	b.Plans(j, "0-3600 n[1-2]", "3600-7200 n[1-2]")
	return b, j
}

// offer returns a job's open or accepted offer in words.
func offer(j *state.Job) string {
	o := refit.OfferAt(j)
	if o == nil {
		return ""
	}
	kind := o.Kind
	if o.Mandatory {
		kind = "must " + kind
	}
	return kind + " " + slurmctl.CompressNodes(o.Wanted())
}

// TestOffered checks which nodes a malleable job is offered, and when it is offered none. Job 2 needs nodes of its own.
func TestOffered(t *testing.T) {
	// comes adds a job that is planned to grow by n3 after some seconds.
	comes := func(b *statetest.Bench, at int) {
		other := b.Evolving(2, 1, "1@1h,2@1h", 3*time.Hour)
		b.Runs(other, "n8")
		b.Plans(other, fmt.Sprintf("0-%d n8", at), fmt.Sprintf("%d-9000 n[3,8]", at))
	}
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string
	}{
		"free nodes, up to its most":            {nil, "grow n[3-6]"},
		"its most is what it has":               {func(_ *statetest.Bench, j *state.Job) { j.Malleable.Max[0] = 2 }, ""},
		"its most is less than it has":          {func(_ *statetest.Bench, j *state.Job) { j.Malleable.Max[0] = 1 }, ""},
		"powers of two":                         {func(_ *statetest.Bench, j *state.Job) { j.Malleable.Sizes = malleable.Pow2 }, "grow n[3-4]"},
		"multiples of four, and two are free":   {func(b *statetest.Bench, j *state.Job) { j.Malleable.Sizes = 4; b.StockRuns(9, "n[5-8]", time.Hour) }, "grow n[3-4]"},
		"multiples of four, and one is free":    {func(b *statetest.Bench, j *state.Job) { j.Malleable.Sizes = 4; b.StockRuns(9, "n[4-8]", time.Hour) }, ""},
		"none is free":                          {func(b *statetest.Bench, _ *state.Job) { b.StockRuns(9, "n[3-8]", time.Hour) }, ""},
		"one is drained":                        {func(b *statetest.Bench, _ *state.Job) { b.Seen.Nodes[2].State = "drained" }, "grow n[4-7]"},
		"Slurm started nothing on one":          {func(b *statetest.Bench, _ *state.Job) { b.Suspect["n3"] = b.Now.Add(time.Minute) }, "grow n[4-7]"},
		"one is allocated to no job":            {func(b *statetest.Bench, _ *state.Job) { b.Leaked = []string{"n3"} }, "grow n[4-7]"},
		"the job may not have one":              {func(_ *statetest.Bench, j *state.Job) { j.Record.ExcNodes = []string{"n3"} }, "grow n[4-7]"},
		"one is reserved before its limit":      {func(b *statetest.Bench, _ *state.Job) { reserve(b, 2*time.Hour) }, "grow n[4-7]"},
		"one is reserved after its limit":       {func(b *statetest.Bench, _ *state.Job) { reserve(b, 3*time.Hour) }, "grow n[3-6]"},
		"a reservation of the past":             {func(b *statetest.Bench, _ *state.Job) { reserve(b, -2*time.Hour) }, "grow n[3-6]"},
		"one is promised for just then":         {func(b *statetest.Bench, _ *state.Job) { comes(b, 96) }, "grow n[4-7]"},
		"one is promised a second later":        {func(b *statetest.Bench, _ *state.Job) { comes(b, 97) }, "grow n[4-7]"}, // the unpromised come first
		"only that one is free, just then":      {func(b *statetest.Bench, _ *state.Job) { comes(b, 96); b.StockRuns(9, "n[4-7]", 9*time.Hour) }, ""},
		"only that one is free, a second later": {func(b *statetest.Bench, _ *state.Job) { comes(b, 97); b.StockRuns(9, "n[4-7]", 9*time.Hour) }, "grow n3"},
		"a stock job waits for two":             {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 5, 2, time.Hour) }, "grow n[5-8]"},
		"a stock job that nothing can start":    {func(b *statetest.Bench, _ *state.Job) { b.Seen.Nodes[7].State = "drained"; b.Stock(9, 5, 8, time.Hour) }, "grow n[3-6]"},
		"a stock job that is held":              {func(b *statetest.Bench, _ *state.Job) { b.Stock(9, 0, 6, time.Hour).Reason = "JobHeldUser" }, "grow n[3-6]"},
		"a stock job, where jobs keep nodes": {func(b *statetest.Bench, _ *state.Job) {
			b.Config.Malleable.Approach = "pra"
			b.Stock(9, 5, 6, time.Hour)
		}, "grow n[3-6]"},
		"its step ends too soon":            {func(_ *statetest.Bench, j *state.Job) { j.Profile[0].Duration = 35 }, ""},
		"its step ends a second later":      {func(_ *statetest.Bench, j *state.Job) { j.Profile[0].Duration = 36 }, "grow n[3-6]"},
		"it declined just now":              {func(b *statetest.Bench, j *state.Job) { j.OfferAfter = b.Now.Add(time.Second) }, ""},
		"it may be asked again from now on": {func(b *statetest.Bench, j *state.Job) { j.OfferAfter = b.Now }, "grow n[3-6]"},
		"it waits for its next step":        {func(b *statetest.Bench, j *state.Job) { b.Waits(j) }, ""},
		"it is suspended":                   {func(b *statetest.Bench, j *state.Job) { j.SuspendedFrom = b.Now }, ""},
		"it is about to end":                {func(_ *statetest.Bench, j *state.Job) { j.Ending = true }, ""},
		"its promise has lapsed":            {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-3600 n[1-2]") }, ""},
		"it lacks a node":                   {func(b *statetest.Bench, j *state.Job) { b.Has(j, "n1") }, ""},
		"it has a claim":                    {func(_ *statetest.Bench, j *state.Job) { j.Claim = 6 }, ""},
		"Slurm resizes a job only once":     {func(b *statetest.Bench, _ *state.Job) { state.SetFacts(b.Core, mode.Facts{ResizesOnce: true}) }, ""},
		"a threshold of the site":           {func(b *statetest.Bench, _ *state.Job) { b.Config.Malleable.Threshold = 3 }, "grow n3"},
		"a threshold that it has reached":   {func(b *statetest.Bench, _ *state.Job) { b.Config.Malleable.Threshold = 2 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := lends(t)
			if c.change != nil {
				c.change(b, j)
			}
			hold.TakeReservations(b.Core, b.Seen)
			Manage(b.Core, b.Seen)
			if got := offer(j); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func reserve(b *statetest.Bench, in time.Duration) { b.Reserve("maint", in, time.Hour, 3, 3) }

// TestDemanded checks when a job that is lent n3 and n4 must give nodes back, and which.
func TestDemanded(t *testing.T) {
	wants := func(node string, at int) func(b *statetest.Bench, j *state.Job) {
		return func(b *statetest.Bench, _ *state.Job) {
			other := b.Evolving(2, 1, "1@1h,2@1h", 3*time.Hour)
			b.Runs(other, "n8")
			b.Plans(other, fmt.Sprintf("0-%d n8", at), fmt.Sprintf("%d-9000 %s", at, "n["+node[1:]+",8]"))
		}
	}
	for name, c := range map[string]struct {
		change func(b *statetest.Bench, j *state.Job)
		want   string
	}{
		"nobody needs them":          {nil, ""},
		"another job's growth comes": {wants("n4", 36), "must shrink n4"},
		"the growth is later":        {wants("n4", 37), ""},
		"its time has nearly come":   {wants("n3", 10), "must shrink n3"},
		"the own node is not lent":   {wants("n2", 36), ""},
		"a stock job could use one": {func(b *statetest.Bench, _ *state.Job) {
			b.StockRuns(9, "n[5-8]", time.Hour)
			b.Stock(8, 5, 1, time.Hour)
		}, "must shrink n4"},
		"behind many elsewhere": {func(b *statetest.Bench, j *state.Job) {
			b.Config.StockJobs = 3
			b.Partition("near", 1, 4)
			b.Partition("far", 5, 8)
			j.Record.Partition = "near"
			b.StockRuns(9, "n[5-8]", time.Hour)
			b.Stock(8, 5, 1, time.Hour).Partition = "near"
			for i := range 6 {
				b.Stock(20+i, 99, 1, time.Hour).Partition = "far"
			}
		}, "must shrink n4"},
		"a stock job could use both": {func(b *statetest.Bench, _ *state.Job) {
			b.StockRuns(9, "n[5-8]", time.Hour)
			b.Stock(8, 5, 2, time.Hour)
		}, "must shrink n[3-4]"},
		"both are not enough for it": {func(b *statetest.Bench, _ *state.Job) {
			b.StockRuns(9, "n[5-8]", time.Hour)
			b.Stock(8, 5, 3, time.Hour)
		}, "must shrink n[3-4]"},
		"a stock job has free nodes": {func(b *statetest.Bench, _ *state.Job) { b.Stock(8, 5, 4, time.Hour) }, ""},
		"a stock job, where jobs keep": {func(b *statetest.Bench, _ *state.Job) {
			b.Config.Malleable.Approach = "pra"
			b.StockRuns(9, "n[5-8]", time.Hour)
			b.Stock(8, 5, 1, time.Hour)
		}, ""},
		"a job that is about to evolve": {func(b *statetest.Bench, _ *state.Job) {
			b.StockRuns(9, "n[5-8]", time.Hour)
			b.Stock(8, 5, 1, time.Hour)
			b.Coming[8] = 1
		}, ""},
		"powers of two: two go":                      {func(b *statetest.Bench, j *state.Job) { j.Malleable.Sizes = malleable.Pow2; wants("n4", 36)(b, j) }, "must shrink n[3-4]"},
		"it is about to end":                         {func(b *statetest.Bench, j *state.Job) { j.Ending = true; wants("n4", 36)(b, j) }, ""},
		"companions go as a whole":                   {func(b *statetest.Bench, j *state.Job) { companion(b, j); wants("n4", 36)(b, j) }, "must shrink n[3-4]"},
		"it promised them, and the time is later":    {promises(71), ""},
		"it promised them, for about now":            {promises(31), "must shrink n[3-4]"},
		"promised and taken again without a promise": {func(b *statetest.Bench, j *state.Job) { promises(31)(b, j); lent(b, j, 0) }, ""},
		"promised, where jobs keep what they have": {func(b *statetest.Bench, j *state.Job) {
			b.Config.Malleable.Approach = "pra"
			promises(31)(b, j)
		}, "must shrink n[3-4]"},
		"not before its own next growth": {func(b *statetest.Bench, j *state.Job) { b.Plans(j, "0-36 n[1-2]", "36-7200 n[1,4]") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := lends(t)
			j.Malleable.Max = []int{4, 4}
			j.Record.NodeList = statetest.Nodes("n[1-4]")
			b.Has(j, "n[1-4]")
			if c.change != nil {
				c.change(b, j)
			}
			Manage(b.Core, b.Seen)
			if got := offer(j); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// lent records that the job got n3 and n4 by an offer, and promised to give them back some seconds from now; 0: it did
// not.
func lent(b *statetest.Bench, j *state.Job, in int) {
	o := refit.Offer{Kind: "grow", Nodes: 2, Accepted: 2, List: statetest.Nodes("n[3-4]")}
	if in > 0 {
		o.Back = b.Now.Unix() + int64(in)
	}
	put(b.Core, j, o)
	refit.CloseOffer(b.Core, j, refit.OfferDone, "")
}

func promises(in int) func(b *statetest.Bench, j *state.Job) {
	return func(b *statetest.Bench, j *state.Job) { lent(b, j, in) }
}

// TestPromises checks by when a job may promise to give back what it is offered, and what it is offered until.
func TestPromises(t *testing.T) {
	for name, c := range map[string]struct {
		until, promise int // seconds from now; 0: none
		want           string
	}{
		"no promise":                {0, 0, ""},
		"any time":                  {0, 9000, ""},
		"the next job's time":       {100, 100, ""},
		"later than the next job":   {100, 101, "they are planned for others, and must be left by"},
		"as soon as it can go":      {0, 35, ""},
		"sooner than it can go":     {0, 34, "since the job has 30s to give them back"},
		"a time that has long been": {0, -1 << 40, "since the job has 30s to give them back"},
	} {
		b, j := lends(t)
		o := refit.Offer{Kind: "grow", Nodes: 2, List: statetest.Nodes("n[3-4]")}
		var until time.Time
		if c.promise != 0 {
			until = b.Now.Add(time.Duration(c.promise) * time.Second)
		}
		if c.promise < 0 {
			until = time.Unix(int64(c.promise), 0)
		}
		if c.until != 0 {
			o.Until = b.Now.Unix() + int64(c.until)
		}
		back, err := promised(b.Core, j, &o, until)
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && c.promise != 0 && back != until.Unix() {
			t.Errorf("%s: %d", name, back)
		}
	}
	b, j := lends(t)
	if _, err := promised(b.Core, j, &refit.Offer{Kind: "shrink"}, b.Now.Add(time.Hour)); err == nil {
		t.Error("a demand was accepted with a promise")
	}
}

// TestOfferedUntil checks that an offer says when the first other job needs one of its nodes, and that a job with many
// promises is offered no more.
func TestOfferedUntil(t *testing.T) {
	b, j := lends(t)
	other := b.Evolving(2, 1, "1@1h,2@1h", 3*time.Hour)
	b.Runs(other, "n8")
	b.Plans(other, "0-1000 n8", "1000-9000 n[3,8]")
	b.StockRuns(9, "n[5-7]", 9*time.Hour)
	Manage(b.Core, b.Seen)
	o := refit.OfferAt(j)
	if o == nil || o.Until != b.Now.Unix()+1000-6 {
		t.Errorf("offered %+v, want until 994 seconds from now", o)
	}
	b, j = lends(t)
	j.Record.NodeList = statetest.Nodes("n[1-4]")
	b.Has(j, "n[1-4]")
	for range row.MostOffers - 1 {
		lent(b, j, 9000)
	}
	j.OfferAfter = b.Now
	if m := (&state.Managing{Core: b.Core, S: b.Seen, Second: b.Now.Unix()}); mayAsk(m, j) {
		t.Error("a job whose promises fill the list is offered more")
	}
}

// companion has the job's lent nodes come by one companion, on a site where Slurm makes no job smaller.
func companion(b *statetest.Bench, j *state.Job) {
	b.MayUpdate(false)
	j.Drive = "companion"
	state.SetMode(b.Core, j)
	b.Has(j, "n[1-2]", "n[3-4]")
	j.Held[1].Step = refit.LentStep
}
