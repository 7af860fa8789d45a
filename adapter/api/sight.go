package api

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Sight describes what Slurm shows a user of nodes, partitions, and reservations, if not everything:
// PrivateData, Hidden=YES, and AllowGroups hide some from users who are not operators.
type Sight struct {
	Nodes       bool                     // any at all
	Partition   func(name string) bool   // whether it is shown
	Reservation func(r Reservation) bool // whether it is shown
}

// sight returns the caller's; nil: everything is shown.
func (r *rights) sight(ctx context.Context, c caller) *Sight {
	if r.shows == nil || r.reading() == Anybody || r.trusted(c) || r.seer(ctx, c)("") {
		return nil
	}
	return r.shows(ctx, c.uid)
}

// nodes returns the shown nodes, with their shown partitions. As in Slurm, a node is hidden if all
// its partitions are.
func (s *Sight) nodes(all []Node) []Node {
	if s == nil {
		return all
	}
	shown := []Node{}
	for _, n := range all {
		in := slices.DeleteFunc(slices.Clone(n.Partitions), func(p string) bool { return !s.Partition(p) })
		if s.Nodes && (len(in) > 0 || len(n.Partitions) == 0) {
			n.Partitions = in
			shown = append(shown, n)
		}
	}
	return shown
}

// shows reports whether a reservation is shown.
func (s *Sight) shows(r Reservation) bool { return s == nil || s.Reservation(r) }

// nodesShown returns how many nodes are.
func (r *rights) nodesShown(ctx context.Context, sight *Sight) (int, error) {
	if !sight.Nodes {
		return 0, nil
	}
	whole, err := r.backend.Cluster(ctx)
	if errors.Is(err, ErrUnavailable) { // none is known yet
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return len(sight.nodes(whole.Nodes)), nil
}

// notShown says that no partition of a query is shown to the caller, as of one that does not exist.
const notShown = "no partition that it may run in is known to you"

// hide takes the partitions that are not shown out of a query for a place. It returns why there is no place if none is left.
func (s *Sight) hide(q *PlacementQuery) string {
	if s == nil || q.Partition == "" || q.Withdraw {
		return ""
	}
	names := slices.DeleteFunc(strings.Split(q.Partition, ","), func(name string) bool { return !s.Partition(name) })
	if q.Partition = strings.Join(names, ","); q.Partition == "" {
		return notShown
	}
	return ""
}

// placement returns an answer without the numbers of nodes that are not shown: where no node is, it counts no more than the job
// needs. Who asks for the default partition learns nothing of one that is not shown.
func (s *Sight) placement(a Placement) Placement {
	switch {
	case s == nil || !a.Ready:
	case slices.ContainsFunc(strings.Split(a.Partition, ","), func(name string) bool { return name != "" && !s.Partition(name) }):
		return Placement{Ready: true, Cluster: a.Cluster, Unfit: notShown}
	case !s.Nodes:
		a.Nodes, a.Free = min(a.Nodes, a.Most), min(a.Free, a.Most)
	}
	return a
}
