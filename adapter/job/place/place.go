package place

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy orders offers, best first.
type Policy string

// The policies; see the package's comment.
const (
	Earliest           Policy = "earliest"
	WorstFit           Policy = "worst-fit"
	CloseToFiles       Policy = "close-to-files"
	ClusterMin         Policy = "cluster-min"
	FlexibleClusterMin Policy = "flexible-cluster-min"
)

var policies = []Policy{Earliest, WorstFit, CloseToFiles, ClusterMin, FlexibleClusterMin}

// Names returns the names of all policies, the default first.
func Names() (all []string) {
	for _, p := range policies {
		all = append(all, string(p))
	}
	return all
}

// ParsePolicy returns the policy of that name.
func ParsePolicy(name string) (Policy, error) {
	if !slices.Contains(policies, Policy(name)) {
		return "", fmt.Errorf("no placement policy %q; choose one of %s", name, strings.Join(Names(), ", "))
	}
	return Policy(name), nil
}

// Splits reports whether the policy may run the components of a job on several clusters.
func (p Policy) Splits() bool { return p == ClusterMin || p == FlexibleClusterMin }

// Offer says how a cluster would run a job. Seconds are since any time, the same for all offers.
type Offer struct {
	Cluster  string
	Start    int64 // second of the planned start, after the transfer of its files
	End      int64 // second of the planned completion
	Need     int   // nodes with which the job starts there
	Free     int   // idle nodes that the job could have now
	Nodes    int   // nodes of the cluster
	Transfer int64 // seconds until all input files are there; 0 if they are
}

func (o *Offer) check() error {
	switch {
	case o.Cluster == "":
		return errors.New("an offer names no cluster")
	case o.Start < 0 || o.End < o.Start:
		return fmt.Errorf("cluster %q offers to run the job from second %d to %d", o.Cluster, o.Start, o.End)
	case o.Nodes < 1 || o.Free < 0 || o.Free > o.Nodes:
		return fmt.Errorf("cluster %q says that %d of %d nodes are idle", o.Cluster, o.Free, o.Nodes)
	case o.Need < 1 || o.Need > o.Nodes:
		return fmt.Errorf("cluster %q offers to run a job of %d nodes on %d", o.Cluster, o.Need, o.Nodes)
	case o.Transfer < 0:
		return fmt.Errorf("cluster %q says that a transfer takes %d s", o.Cluster, o.Transfer)
	}
	return nil
}

// check returns what is wrong with offers.
func check(offers []Offer) error {
	if len(offers) == 0 {
		return errors.New("no cluster offers to run the job")
	}
	seen := make(map[string]bool, len(offers))
	for i := range offers {
		if err := offers[i].check(); err != nil {
			return err
		}
		if seen[offers[i].Cluster] {
			return fmt.Errorf("two offers are from cluster %q", offers[i].Cluster)
		}
		seen[offers[i].Cluster] = true
	}
	return nil
}

// Choose orders the offers for a job that runs on one cluster, best first, and says why the first
// is the best. Clusters on which the policy has no preference, and those where the job could not start
// now, come by completion, then as given.
// An error means that there is no offer, or a nonsensical one. It takes O(n log n).
func Choose(policy Policy, offers []Offer) (order []int, why string, err error) {
	if err := check(offers); err != nil {
		return nil, "", err
	}
	compare, err := policy.compare()
	if err != nil {
		return nil, "", err
	}
	order = sorted(offers, func(a, b *Offer) int { return cmp.Or(compare(a, b), cmp.Compare(a.End, b.End)) })
	return order, policy.why(offers, order), nil
}

// sorted returns the offers' indices in an order; equal ones stay as given.
func sorted(offers []Offer, compare func(a, b *Offer) int) []int {
	order := make([]int, len(offers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(&offers[a], &offers[b]) })
	return order
}

// compare returns the preference of a policy for a job that runs on one cluster. With one component,
// cluster minimisation is worst fit.
func (p Policy) compare() (func(a, b *Offer) int, error) {
	switch p {
	case Earliest:
		return func(a, b *Offer) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start)) }, nil
	case WorstFit, ClusterMin, FlexibleClusterMin:
		return inRoom(func(a, b *Offer) int { return cmp.Compare(b.Free, a.Free) }), nil
	case CloseToFiles:
		return inRoom(func(a, b *Offer) int {
			return cmp.Or(cmp.Compare(a.Transfer, b.Transfer), cmp.Compare(b.Free, a.Free))
		}), nil
	}
	_, err := ParsePolicy(string(p))
	return nil, err
}

func (o *Offer) hasRoom() bool { return o.Free >= o.Need }

// inRoom puts clusters where the job could start now before the others, in the order of compare. The
// others come by completion.
func inRoom(compare func(a, b *Offer) int) func(a, b *Offer) int {
	return func(a, b *Offer) int {
		switch {
		case a.hasRoom() && b.hasRoom():
			return compare(a, b)
		case a.hasRoom():
			return -1
		case b.hasRoom():
			return 1
		}
		return cmp.Compare(a.End, b.End)
	}
}

// why says in a sentence why the first in the order is the best.
func (p Policy) why(offers []Offer, order []int) string {
	best := &offers[order[0]]
	if len(order) == 1 {
		return fmt.Sprintf("%s is the only cluster that offers to run the job", best.Cluster)
	}
	next := &offers[order[1]]
	byTime := fmt.Sprintf("%s completes the job first, at the same time as %s", best.Cluster, next.Cluster)
	if best.End < next.End {
		byTime = fmt.Sprintf("%s completes the job first, %s before %s", best.Cluster, seconds(next.End-best.End), next.Cluster)
	}
	switch {
	case p == Earliest:
		return byTime
	case !best.hasRoom():
		return "no cluster has room now; " + byTime
	case p == CloseToFiles && best.Transfer == 0:
		return fmt.Sprintf("%s has all input files, and %d idle nodes", best.Cluster, best.Free)
	case p == CloseToFiles:
		return fmt.Sprintf("%s has the input files after %s, and %d idle nodes", best.Cluster, seconds(best.Transfer), best.Free)
	}
	return fmt.Sprintf("%s has %d idle nodes, %s has %d", best.Cluster, best.Free, next.Cluster, next.Free)
}

// seconds formats a length of time. Hostile lengths saturate.
func seconds(n int64) string {
	return (time.Duration(min(n, int64(1<<63-1)/int64(time.Second))) * time.Second).String()
}
