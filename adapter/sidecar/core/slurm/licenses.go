package slurm

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm starts a job only while the licences that it asks for are free, and counts them until the job ends. Growths ask for none.
// How many there are is read only while an evolving job waits for some, or a stock job while nodes are held, or with mode observe, any job.
// Who uses them is known from every poll.

// licensesFor is how long the sidecar relies on the numbers of licences.
const licensesFor = time.Minute

// LicensesOf returns what licences a job asks for, or why it cannot be planned with them. It reports false while the licences
// of the cluster are not known. If they cannot be read, Slurm alone counts them.
func LicensesOf(c *state.Core, j *state.Job) (asked []slurmctl.License, why string, known bool) {
	if j.Record.Licenses == "" {
		return nil, "", true
	}
	asked, err := slurmctl.ParseLicenses(j.Record.Licenses)
	if err != nil {
		return nil, err.Error(), true
	}
	if !ReadLicenses(c) {
		return nil, "", false
	}
	if !c.Licenses.Known {
		return nil, "", true
	}
	if why := lacking(c, asked, nil); why != "" {
		return nil, why, true
	}
	return asked, "", true
}

// ReadLicenses reads the licences of the cluster if that is due. It reports whether they were read before.
func ReadLicenses(c *state.Core) bool {
	at := c.Licenses.Read
	if (at.IsZero() || c.Passed(c.Now, at.Add(licensesFor))) && c.Work.Room() {
		c.Ask(nil, "licenses", state.KindLicenses, msg.Task{Command: msg.ReadLicenses{}}, state.Args{Begun: c.Now})
	}
	return !at.IsZero()
}

// lacking returns in words which of some licences the cluster does not have beside those that are in use; "" if it has all.
func lacking(c *state.Core, asked []slurmctl.License, used map[string]int) string {
	if why := slurmctl.LacksLicense(asked, c.Licenses.Stock); why != "" {
		return "waits for licences: " + why
	}
	for _, l := range c.Licenses.Stock {
		if n, left := countOf(asked, l.Name), l.Count-away(l)-used[l.Name]; !l.Spread && n > max(left, 0) {
			text := fmt.Sprintf("waits for licences: %d of %d %s are free (Licenses), and it asks for %d", max(left, 0), l.Count, l.Name, n)
			if l.Away > 0 {
				text += fmt.Sprintf("; %d are in use outside of this cluster", away(l))
			}
			return text
		}
	}
	return ""
}

// SettleLicenses records the licences of the cluster.
func SettleLicenses(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	if state.Transient(o.Err) {
		return // again, a little later
	}
	read, _ := o.Result.([]slurmctl.LicenseStock)
	if o.Err != nil {
		c.Log.WithError(o.Err).Warn("cannot read the licences; Slurm alone counts them")
	}
	c.Licenses = state.LicenseBook{Stock: read, Known: o.Err == nil, Read: p.Args.Begun}
	c.NextCycle = c.Now
}

// away returns how many of a licence nothing in this cluster uses, and no job can have.
func away(l slurmctl.LicenseStock) int { return min(l.Away, l.Count) }

func countOf(list []slurmctl.License, name string) int {
	for _, l := range list {
		if l.Name == name {
			return l.Count
		}
	}
	return 0
}

// Using returns which licences a job of Slurm has, as far as they can be counted.
func Using(r *slurmctl.Job) []slurmctl.License {
	if r.Licenses == "" || len(r.NodeList) == 0 || r.State == slurmctl.Completing || r.Ended() {
		return nil // Slurm returns them before the nodes
	}
	all, _ := slurmctl.ParseLicenses(r.Licenses) // from 25.05 on, a running job shows those that it got of a choice
	return all
}

// AddLicenses adds the licences with these names, with their use by jobs that have begun, and by reservations of others. It
// reads what each job has once, however many names there are.
func AddLicenses(c *state.Core, o *msg.Occupancy, s *state.Snapshot, names msg.Set) {
	at := map[string]int{}
	for _, l := range c.Licenses.Stock {
		if !names[l.Name] || l.Spread {
			continue
		}
		at[l.Name] = len(o.Licenses.All)
		o.Licenses.Names = append(o.Licenses.Names, l.Name)
		o.Licenses.All = append(o.Licenses.All, planner.License{Total: l.Count})
	}
	add := func(has []slurmctl.License, from, until int64) { addUse(o, at, has, from, until) }
	for _, l := range c.Licenses.Stock {
		add([]slurmctl.License{{Name: l.Name, Count: away(l)}}, o.Origin, planner.Forever)
	}
	for i := range s.Jobs {
		if has := Using(&s.Jobs[i]); len(has) > 0 {
			add(has, o.Origin, returns(c, &s.Jobs[i], s.Taken.Unix()))
		}
	}
	for _, j := range c.Active {
		if j.State == row.Starting && j.Record.State == slurmctl.Pending && len(j.Plan) > 0 {
			asked, _ := slurmctl.ParseLicenses(j.Record.Licenses)
			add(asked, o.Origin, c.Until(s.Taken.Unix(), j.Plan[len(j.Plan)-1].End)+max(Margin(c), 1))
		}
	}
	for _, name := range state.SortedKeys(s.Reservations) {
		r := s.Reservations[name]
		add(r.Licenses, r.Start.Unix(), r.End.Unix())
	}
}

// KeepLicenses adds the licences that a pending job, or a task of an array, asks for, from one Unix second to another.
func KeepLicenses(o *msg.Occupancy, r *slurmctl.Job, from, until int64) {
	asked, _ := slurmctl.ParseLicenses(r.Licenses)
	for _, need := range o.Licenses.Needs(asked) {
		of := &o.Licenses.All[need.License]
		of.Used = append(of.Used, planner.LicenseUse{Start: max(from-o.Origin, 0), End: until - o.Origin, Count: need.Count})
	}
}

// addUse adds the use of licences from one Unix second to another. at has the places of those that count.
func addUse(o *msg.Occupancy, at map[string]int, has []slurmctl.License, from, until int64) {
	if until != planner.Forever {
		until -= o.Origin
	}
	for _, l := range has {
		if i, wanted := at[l.Name]; wanted && l.Count > 0 {
			o.Licenses.All[i].Used = append(o.Licenses.All[i].Used, planner.LicenseUse{Start: max(from-o.Origin, 0), End: until, Count: l.Count})
		}
	}
}

// returns returns the Unix second from which the plan can count on the licences of a job that has begun. An evolving job
// has them until its plan ends.
func returns(c *state.Core, r *slurmctl.Job, now int64) int64 {
	j := c.Owner(r.ID)
	if j == nil || j.BaseID() != r.ID || !j.Runs() || j.Lapsed() || j.Claim > 0 || len(j.Plan) == 0 || len(j.Plan) < len(j.Profile) || j.Mode.StepsAreJobs {
		return Releases(c, r, now)
	}
	return c.Until(now, j.Plan[len(j.Plan)-1].End) + max(Margin(c), 1)
}

// LicensesInUse returns in words which licences of a pending job are in use at present; "" if it can have all. No nodes are held for
// such a job: it cannot start on them.
func LicensesInUse(c *state.Core, s *state.Snapshot, r *slurmctl.Job) string {
	if r.Licenses == "" || !c.Licenses.Known {
		return ""
	}
	asked, err := slurmctl.ParseLicenses(r.Licenses)
	if err != nil {
		return ""
	}
	return lacking(c, asked, licensesUsed(c, s))
}

// licensesUsed counts the licences that are in use or reserved at present.
func licensesUsed(c *state.Core, s *state.Snapshot) map[string]int {
	if s.LicensesUsed == nil {
		s.LicensesUsed = map[string]int{}
		for i := range s.Jobs {
			for _, l := range Using(&s.Jobs[i]) {
				s.LicensesUsed[l.Name] += l.Count
			}
		}
		for _, r := range s.Reservations {
			for _, l := range r.Licenses {
				if c.ReachedSecond(s.Taken.Unix(), r.Start.Unix()) && !c.ReachedSecond(s.Taken.Unix(), r.End.Unix()) {
					s.LicensesUsed[l.Name] += l.Count
				}
			}
		}
	}
	return s.LicensesUsed
}

// LicensesLeft predicts when licences are free beside their use in an occupancy. Times count from its origin.
type LicensesLeft struct {
	all   *msg.Licenses
	used  []*planner.Timeline
	ahead bool
}

// LicensesLeftOf returns the licences of an occupancy. With `ahead`, a job must have them free for as long as it lasts, and not only
// when it starts.
func LicensesLeftOf(o *msg.Occupancy, ahead bool) *LicensesLeft {
	l := &LicensesLeft{all: &o.Licenses, used: make([]*planner.Timeline, len(o.Licenses.All)), ahead: ahead}
	for i, one := range o.Licenses.All {
		l.used[i] = &planner.Timeline{}
		for _, u := range one.Used {
			l.used[i].Add(u.Start, u.End, u.Count)
		}
	}
	return l
}

// LicensesNow returns the licences of an occupancy as Slurm sees them: only with bf_licenses, its backfill plans them, too.
func LicensesNow(c *state.Core, o *msg.Occupancy) *LicensesLeft {
	return LicensesLeftOf(o, c.SlurmConfig.Has("bf_licenses"))
}

// After returns the first second, at that time or later, at which a job can start that asks for some licences.
func (l *LicensesLeft) After(at int64, asked []slurmctl.License, lasts int64) int64 {
	if !l.ahead {
		lasts = 1
	}
	for _, need := range l.all.Needs(asked) {
		if at < planner.Forever {
			at = max(at, l.used[need.License].EarliestFree(at, need.Count, lasts, l.all.All[need.License].Total))
		}
	}
	return at
}

// Take has a job use licences from start to end.
func (l *LicensesLeft) Take(start, end int64, asked []slurmctl.License) {
	for _, need := range l.all.Needs(asked) {
		l.used[need.License].Add(start, end, need.Count)
	}
}
