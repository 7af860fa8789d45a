package sim

import (
	"fmt"
	"math"

	"github.com/evoslurm/evoslurm/adapter/job/place"
)

// placementSet returns a figure of a run, by workload, policy, and place of waiting. NaN: it is missing.
type placementSet func(workload string, policy place.Policy, queue, column string) float64

// placementClaims lists what the texts on KOALA's policies say. All are for jobs that wait in KOALA's queue.
var placementClaims = []struct {
	says    string
	margins func(of placementSet) []float64 // it holds where all are above 0
	figures string                          // of the margins' means
	why     string                          // see KoalaFinding
}{
	{"close-to-files with replication works best, of worst-fit and close-to-files (Mohamed and Epema, CLUSTER 2004)",
		func(of placementSet) []float64 {
			best := of("replicated", place.CloseToFiles, inKoala, "response")
			return []float64{of("replicated", place.WorstFit, inKoala, "response") - best, of("files", place.CloseToFiles, inKoala, "response") - best,
				of("files", place.WorstFit, inKoala, "response") - best}
		}, "response shorter by %.1f s than worst-fit with replication, %.1f s than close-to-files without, %.1f s than worst-fit without", ""},
	{"close-to-files favours clusters with the files (Buisson et al. 2007, IV-A)",
		func(of placementSet) []float64 {
			return []float64{of("files", place.WorstFit, inKoala, "gigabytes") - of("files", place.CloseToFiles, inKoala, "gigabytes")}
		}, "%.0f GB fewer than worst-fit", ""},
	{"worst-fit balances the load (IV-A)",
		func(of placementSet) []float64 {
			return []float64{of("files", place.CloseToFiles, inKoala, "imbalance") - of("files", place.WorstFit, inKoala, "imbalance"),
				of("apps", place.Earliest, inCluster, "imbalance") - of("apps", place.WorstFit, inKoala, "imbalance")}
		}, "%.2f points less between clusters than with close-to-files, %.2f less than with earliest",
		"it levels idle nodes and not their share, so small clusters are less loaded"},
	{"the flexible form of cluster minimisation decreases the queue time (IV-A)",
		func(of placementSet) []float64 {
			return []float64{of("components", place.ClusterMin, inKoala, "wait") - of("components", place.FlexibleClusterMin, inKoala, "wait")}
		}, "%.1f s less than cluster minimisation", ""},
	{"co-allocation is beneficial despite wide-area communication (Sonmez et al. 2010)",
		func(of placementSet) []float64 {
			return []float64{of("components", place.WorstFit, inKoala, "response") - of("components", place.FlexibleClusterMin, inKoala, "response")}
		}, "response shorter by %.1f s than worst-fit on one cluster", ""},
}

// placementFindings says which claims hold. Claims about rows that were not played are left out.
func (p Placement) findings(workloads []string, ways []placementWay, played [][][]placementFigures) (all []KoalaFinding) {
	set := func(run int) placementSet {
		return func(workload string, policy place.Policy, queue, column string) float64 {
			for w, name := range workloads {
				for k, way := range ways {
					if name == workload && way == (placementWay{policy, queue}) {
						return played[w][k][run].columns[column]
					}
				}
			}
			return math.NaN()
		}
	}
	for _, c := range placementClaims {
		if len(played) == 0 || len(played[0][0]) == 0 {
			return nil
		}
		runs := len(played[0][0])
		means := make([]any, len(c.margins(set(0))))
		missing := false
		for i := range means {
			sum := 0.
			for run := range runs {
				sum += c.margins(set(run))[i]
			}
			means[i] = sum / float64(runs)
			missing = missing || math.IsNaN(sum)
		}
		if !missing {
			verdict := decide(runs, func(run int) []float64 { return c.margins(set(run)) })
			found := KoalaFinding{Says: c.says, Verdict: verdict, Figures: fmt.Sprintf(c.figures, means...)}
			if verdict == HoldsNot && p == DefaultPlacement {
				found.Why = c.why
			}
			all = append(all, found)
		}
	}
	return all
}
