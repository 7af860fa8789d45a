package bag

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// Read reads the state of the bag in a folder, or of the campaign. It changes nothing.
func Read(dir string) (*State, error) {
	h, err := readHead(dir)
	if err == nil {
		return readCampaign(dir, h)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	left := int64(mostJournal)
	s, _, err := read(dir, &left)
	return s, err
}

// readCampaign joins the states of a campaign's shares.
func readCampaign(dir string, h head) (*State, error) {
	all := NewState(h.List)
	all.campaign, all.tallies = true, map[string]Tally{}
	left := int64(mostJournal)
	for number := range h.shares() {
		s, _, err := read(shareDir(dir, number), &left)
		switch part := h.part(number); {
		case errors.Is(err, errNoBag) || errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case !s.same(part):
			return nil, fmt.Errorf("%s is of other tasks", shareDir(dir, number))
		case part.First == collectID:
			all.collected = s.word()
		default:
			all.join(s, number*h.Size)
		}
	}
	if h.Collect != nil {
		all.collected = cmp.Or(all.collected, "waiting")
	}
	signs, err := readSigns(dir)
	if err != nil {
		return nil, err
	}
	for name, s := range signs {
		if s.Leader != name {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, signsFolder, name))
		if err != nil {
			continue // it has just ended
		}
		all.leaders = append(all.leaders, leader{s.sign, info.ModTime()})
		all.Slots = min(all.Slots+min(max(s.Slots, 0), mostSlots), mostSlots)
	}
	return all, nil
}

// leader is a sign of life with the time at which the file system says that it was written.
type leader struct {
	sign
	at time.Time
}

// join adds the state of a share whose first task has the index base.
func (s *State) join(part *State, base int) {
	copy(s.tasks[base:], part.tasks)
	for i, l := range part.leases {
		s.leases[base+i] = l
	}
	for i, why := range part.whys {
		s.whys[base+i] = why
	}
	if part.Began > 0 {
		s.saw(part.Began)
		s.Began = min(s.Began, part.Began)
	}
	s.Last = max(s.Last, part.Last)
	s.done, s.failed, s.voids, s.late = s.done+part.done, s.failed+part.failed, s.voids+part.voids, s.late+part.late
	for name, t := range part.tallies {
		s.tallies[name] = s.tallies[name].plus(t)
	}
	if n := len(part.leases); n > 0 {
		s.tallies[part.lease.Cluster] = s.tallies[part.lease.Cluster].plus(Tally{Running: n})
	}
}

func (t Tally) plus(o Tally) Tally {
	return Tally{t.Running + o.Running, t.Done + o.Done, t.Failed + o.Failed, t.Lost + o.Lost}
}

// word says how the one task of a bag stands.
func (s *State) word() string {
	switch {
	case s.done > 0:
		return "done"
	case s.failed > 0:
		return "failed"
	case len(s.leases) > 0:
		return "running"
	}
	return "waiting"
}

// ClusterSummary says how a cluster takes part in a campaign.
type ClusterSummary struct {
	Name  string `json:"cluster"`
	Slots int    `json:"slots"` // how many tasks may run at once
	Tally
	Jobs []uint32   `json:"jobs,omitempty"` // those that work the campaign off
	Seen time.Time  `json:"seen,omitzero"`  // last sign of life of one of them
	Out  *time.Time `json:"left_out_until,omitempty"`
	Why  string     `json:"why,omitempty"`
}

// clusters returns the clusters that have taken part, by name.
func (s *State) clusters(now time.Time) []ClusterSummary {
	if !s.campaign {
		return nil
	}
	by := map[string]ClusterSummary{}
	for name, t := range s.tallies {
		by[name] = ClusterSummary{Name: name, Tally: t}
	}
	slices.SortFunc(s.leaders, func(a, b leader) int { return cmp.Compare(a.Job, b.Job) })
	for _, l := range s.leaders {
		c := by[l.Cluster]
		c.Name, c.Slots = l.Cluster, min(c.Slots+min(max(l.Slots, 0), mostSlots), mostSlots)
		c.Jobs = append(c.Jobs, l.Job)
		if l.at.After(c.Seen) {
			c.Seen = l.at
		}
		if until := time.Unix(l.Out, 0); until.After(now) {
			c.Out, c.Why = &until, legible.Printable(l.Why, false)
		}
		by[l.Cluster] = c
	}
	return slices.SortedFunc(maps.Values(by), func(a, b ClusterSummary) int { return cmp.Compare(a.Name, b.Name) })
}
