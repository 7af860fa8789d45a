package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A chain is adopted once all of its jobs are there. Users can write markers of chains without end, so a job of a
// chain never looks at other jobs than those of its own chain.

// LeastForLinks is how long evosbatch may take for the next job of a chain even if give_up is shorter.
const LeastForLinks = time.Minute

// wholeChain returns the Slurm jobs of a chain, and its request. The list is nil if the job is no chain. It returns
// false while jobs of the chain are missing, and for a link that is adopted with the chain's first job.
func wholeChain(c *state.Core, s *state.Snapshot, r *slurmctl.Job, sp request.Request) (request.Request, []slurmctl.JobID, bool) {
	switch {
	case sp.Chain == nil:
		return sp, nil, true
	case sp.Chain.First != 0:
		return restOfChain(c, s, r, sp)
	}
	links := between(linksOf(c, s, chainWith(r, sp)), 2, len(sp.Profile))
	if len(links) < len(sp.Profile)-1 {
		return sp, nil, false
	}
	return sp, slices.Concat([]slurmctl.JobID{r.ID}, links), true
}

// neverWhole returns why a job of a chain that is not whole is not adopted, or nil while that may change: if a job of
// the chain was submitted less than give_up ago, or a script of the user's is unread.
func neverWhole(c *state.Core, s *state.Snapshot, r *slurmctl.Job, sp request.Request) error {
	links, since := linksOf(c, s, chainWith(r, sp)), r.SubmitTime
	if links.Latest.After(since) {
		since = links.Latest
	}
	switch {
	case !c.Reached(s.Taken, since.Add(max(c.Config.GiveUp, LeastForLinks))) || c.Links.Unread[r.UID]:
		return nil
	case sp.Chain.First != 0:
		return strayLink(c, s, r, sp)
	}
	return fmt.Errorf("its chain has %d steps, but Slurm has the jobs of only %d: submit it again with evosbatch",
		len(sp.Profile), 1+len(between(links, 2, len(sp.Profile))))
}

// strayLink returns why a link is not adopted with its chain, or nil if the chain is not decided yet, or cancels the
// link at its end.
func strayLink(c *state.Core, s *state.Snapshot, r *slurmctl.Job, sp request.Request) error {
	gone := errors.New("other jobs of its chain are gone: submit it again with evosbatch")
	first := slurmctl.JobID(sp.Chain.First)
	if other := s.ByID[first]; other != nil && other.UID != r.UID {
		return gone // the text must not say what became of another user's job
	}
	if c.Refused[first].ID != 0 {
		return fmt.Errorf("the first job of its chain, %d, is refused", first)
	}
	_, known := c.Known[first]
	if known || s.ByID[first] != nil || c.ByID[first] != nil {
		return nil
	}
	if rest := between(linksOf(c, s, chainWith(r, sp)), sp.Chain.Step, len(sp.Profile)); len(rest) > 0 && len(rest) == len(sp.Profile)-sp.Chain.Step+1 && rest[0] == r.ID {
		return nil // an earlier link decides
	}
	return gone
}

// chainWith returns the chain that a job belongs to.
func chainWith(r *slurmctl.Job, sp request.Request) state.Chain {
	if sp.Chain.First == 0 {
		return state.Chain{First: r.ID, UID: r.UID}
	}
	return state.Chain{First: slurmctl.JobID(sp.Chain.First), UID: r.UID}
}

// linksOf returns the links of a chain. It looks at all jobs only once in each cycle.
func linksOf(c *state.Core, s *state.Snapshot, chain state.Chain) state.Links {
	if c.Links == nil {
		c.Links = allLinks(c, s)
	}
	return c.Links.Of[chain]
}

// between returns the links from one step to another, without the missing ones. O(log links).
func between(links state.Links, from, to int) []slurmctl.JobID {
	i, _ := slices.BinarySearch(links.Steps, from)
	j, _ := slices.BinarySearch(links.Steps, to+1)
	return links.Jobs[i:max(i, j)]
}

// allLinks returns the links of all chains that are not adopted. If several links claim one step, it returns the
// one that Slurm lists first.
func allLinks(c *state.Core, s *state.Snapshot) *state.AllLinks {
	type link struct {
		step int
		job  *slurmctl.Job
	}
	all, found := &state.AllLinks{Of: map[state.Chain]state.Links{}, Unread: map[uint32]bool{}}, map[state.Chain][]link{}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		sp, asked, err := requestOf(c, s, r)
		switch _, coming := c.Coming[r.ID]; {
		case err != nil:
		case !asked && coming:
			all.Unread[r.UID] = true
		case asked && sp.Chain != nil && sp.Chain.First != 0 && sp.Chain.Step > 0 && c.Owner(r.ID) == nil:
			chain := chainWith(r, sp)
			found[chain] = append(found[chain], link{sp.Chain.Step, r})
		}
	}
	for chain, links := range found {
		slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.step, b.step) })
		var l state.Links
		for i, one := range links {
			if one.job.SubmitTime.After(l.Latest) {
				l.Latest = one.job.SubmitTime
			}
			if i == 0 || one.step != links[i-1].step {
				l.Steps, l.Jobs = append(l.Steps, one.step), append(l.Jobs, one.job.ID)
			}
		}
		all.Of[chain] = l
	}
	return all
}
