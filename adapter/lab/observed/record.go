package observed

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// mostJobs bounds the jobs of a report, and its samples.
const mostJobs = 1_000_000

// Records with their times.
type (
	nodesAt struct {
		observed.NodeState
		At int64
	}
	reservationAt struct {
		observed.Reservation
		At int64
	}
	loadAt struct {
		observed.Load
		At int64
	}
)

// record holds the lines of a folder's files.
type record struct {
	site         observed.Site // the latest
	masked       bool
	from, until  int64
	jobs         map[jobKey]observed.Job
	starts       []observed.Start
	samples      []observed.Sample
	nodes        []nodesAt
	reservations []reservationAt
	loads        []loadAt
	gaps         []observed.Gap
	left         int      // jobs without records
	days         []string // with records
	notes        []string // what cannot be read, and what is missing
}

// jobKey identifies a job: Slurm uses IDs again.
type jobKey struct {
	id     slurmctl.JobID
	submit int64
}

// read reads the files of a folder from the day of since on.
func read(dir string, since time.Time) (*record, error) {
	days, err := observed.Days(dir)
	if err != nil {
		return nil, err
	}
	r := &record{jobs: map[jobKey]observed.Job{}}
	last := ""
	for _, d := range days {
		if !since.IsZero() && d.Date < since.UTC().Format(time.DateOnly) {
			continue
		}
		if day, _ := time.Parse(time.DateOnly, last); last != "" && day.AddDate(0, 0, 1).Format(time.DateOnly) != d.Date {
			r.note("there is no record between %s and %s", last, d.Date)
		}
		if last = d.Date; r.readDay(d) {
			r.days = append(r.days, d.Date)
		}
	}
	if r.left > 0 {
		r.note("%d jobs of users with very many were not recorded", r.left)
	}
	slices.SortFunc(r.starts, func(a, b observed.Start) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Start, b.Start)) })
	return r, nil
}

func (r *record) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// readDay reads the files of a day, and reports whether it has any record.
func (r *record) readDay(d observed.Day) (some bool) {
	day, _ := time.Parse(time.DateOnly, d.Date) // as Days found it
	for _, file := range d.Files {
		n, err := r.readFile(file, day.Unix())
		some = some || n > 0
		if err != nil && !errors.Is(err, observed.ErrCut) {
			r.note("%s: %v", filepath.Base(file), err)
		}
	}
	if !some {
		r.note("%s: nothing was recorded", d.Date)
	}
	return some
}

// astray is how far from its day a record may be, by Slurm's clock, in seconds.
const astray = 86400

// readFile reads a file of the day that begins at that second.
func (r *record) readFile(name string, day int64) (lines int, err error) {
	in, err := observed.Open(name)
	if err != nil {
		return 0, errors.Unwrap(err) // without the folder
	}
	defer in.Close()
	r.site, r.masked = in.Heading.Site, r.masked || in.Heading.Masked
	for ; ; lines++ {
		one, err := in.Next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		} else if err != nil {
			return lines, err
		}
		if one.At < day-astray || one.At > day+86400+astray {
			return lines, fmt.Errorf("a record of second %d is not of this day: the rest is left out", one.At)
		}
		if lines == 0 {
			r.seen(min(max(in.Heading.At, day-astray), one.At))
		}
		if len(r.jobs) >= mostJobs || len(r.samples) >= 4*mostJobs {
			return lines, fmt.Errorf("more than %d jobs: the rest is left out; take --since", mostJobs)
		}
		r.add(one)
	}
}

// seen widens the time of the record.
func (r *record) seen(second int64) {
	if r.from == 0 || second < r.from {
		r.from = second
	}
	r.until = max(r.until, second)
}

func (r *record) add(one observed.Record) {
	r.seen(one.At)
	switch {
	case one.Site != nil:
		r.site = *one.Site
	case one.Job != nil:
		r.jobs[jobKey{one.Job.ID, one.Job.Submit}] = *one.Job
	case one.Start != nil:
		r.starts = append(r.starts, *one.Start)
	case one.Sample != nil:
		r.samples = append(r.samples, *one.Sample)
	case one.Nodes != nil:
		r.nodes = append(r.nodes, nodesAt{*one.Nodes, one.At})
	case one.Reservation != nil:
		r.reservations = append(r.reservations, reservationAt{*one.Reservation, one.At})
	case one.Load != nil:
		r.loads = append(r.loads, loadAt{*one.Load, one.At})
	case one.Gap != nil:
		r.gaps = append(r.gaps, *one.Gap)
	case one.Left != nil:
		r.left += one.Left.Jobs
	}
}

// leads returns the predictions before starts, by lead.
func (r *record) leads() map[int64][]promise {
	all := map[int64][]promise{}
	for _, s := range r.starts {
		for _, l := range s.Before {
			all[l.Lead] = append(all[l.Lead], promise{made: unix(l.At), ours: unix(l.Ours), slurm: unix(l.Slurm), start: unix(s.Start)})
		}
	}
	return all
}

// promises returns the samples with what became of them. Jobs that ended without a start are left out.
func (r *record) promises() (all []promise, gone int) {
	ended := map[slurmctl.JobID]int64{}
	for _, key := range slices.SortedFunc(maps.Keys(r.jobs), func(a, b jobKey) int { return cmp.Compare(a.submit, b.submit) }) {
		if j := r.jobs[key]; j.Start == 0 && !j.Standing {
			ended[j.ID] = max(j.End, j.Submit)
		}
	}
	for _, s := range r.samples {
		p := promise{made: unix(s.At), ours: unix(s.Ours), slurm: unix(s.Slurm), until: unix(r.until)}
		i, _ := slices.BinarySearchFunc(r.starts, s, func(a observed.Start, s observed.Sample) int {
			return cmp.Or(cmp.Compare(a.Job, s.Job), cmp.Compare(a.Start, s.At))
		})
		if i < len(r.starts) && r.starts[i].Job == s.Job {
			p.start = unix(r.starts[i].Start)
		} else if ended[s.Job] >= s.At {
			gone++
			continue
		}
		all = append(all, p)
	}
	return all, gone
}

// unix returns an instant; zero if it is not known.
func unix(second int64) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Unix(second, 0).UTC()
}
