package sim

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/job/place"
	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

// Placement compares the policies that choose among clusters, on the five clusters of the DAS-3; see
// doc.go for its model.
type Placement struct {
	Jobs          int    `json:"jobs"`
	Load          int    `json:"load"`          // percent of all nodes that the jobs need
	Background    int    `json:"background"`    // percent of each cluster that local jobs need
	Limit         int    `json:"limit"`         // requested time of a job, as a multiple of what it takes
	Poll          int    `json:"poll"`          // seconds between two scans of KOALA's queue
	File          int    `json:"file"`          // gigabytes of the largest files; others have a half or a quarter
	Replicas      int    `json:"replicas"`      // clusters that have a file, in the workload replicated
	Network       string `json:"network"`       // lightpaths or internet
	Communication int    `json:"communication"` // mean percent of its time that a job communicates in one cluster
	Ratio         int    `json:"ratio"`         // time of a message between clusters, as a multiple of one within
}

// DefaultPlacement loads the clusters to 80 %, and has a job on two equal halves take 1.25 times as
// long on average.
var DefaultPlacement = Placement{Jobs: 300, Load: 60, Background: 20, Limit: 2, Poll: 10, File: 32, Replicas: 3, Network: "lightpaths", Communication: 10, Ratio: 6}

// PlacementWorkloads lists the workloads of Placement.
var PlacementWorkloads = []string{"apps", "files", "replicated", "components", "cigri"}

// Validate returns what cannot be simulated.
func (p Placement) Validate(workloads []string) error {
	for _, v := range []struct {
		name             string
		got, least, most int
	}{
		{"jobs", p.Jobs, 1, 2_000}, {"load", p.Load, 1, 90}, {"background", p.Background, 0, 60}, {"limit", p.Limit, 1, 100}, {"poll", p.Poll, 1, 3600},
		{"file", p.File, 4, 4096}, {"replicas", p.Replicas, 1, len(das3)}, {"communication", p.Communication, 0, 50}, {"ratio", p.Ratio, 1, 1000},
	} {
		if v.got < v.least || v.got > v.most {
			return fmt.Errorf("%s: %d is not within %d … %d", v.name, v.got, v.least, v.most)
		}
	}
	if p.Load+p.Background > 95 {
		return fmt.Errorf("load: %d %% by the jobs and %d %% by local jobs exceed 95 %%", p.Load, p.Background)
	}
	if _, known := networks[p.Network]; !known {
		return fmt.Errorf("network: %q must be lightpaths or internet", p.Network)
	}
	for _, w := range workloads {
		if !slices.Contains(PlacementWorkloads, w) {
			return fmt.Errorf("workloads: no workload %q; choose among %v", w, PlacementWorkloads)
		}
	}
	return nil
}

// placementWay is a policy, and where a job waits that has room nowhere.
type placementWay struct {
	policy place.Policy
	queue  string
}

// Where jobs wait: in one cluster's queue, chosen at submission, or in KOALA's, for room anywhere.
const (
	inCluster = "cluster"
	inKoala   = "koala"
)

// placementWays returns the ways to place jobs by policies. Earliest comes first: all others are
// compared with it.
func placementWays(policies []place.Policy) []placementWay {
	ways := []placementWay{{place.Earliest, inCluster}}
	for _, p := range policies {
		if p != place.Earliest {
			ways = append(ways, placementWay{p, inCluster}, placementWay{p, inKoala})
		}
	}
	return ways
}

// PlacementColumns lists the figures of a row. Times are means in seconds, and shares are percent.
var PlacementColumns = []string{"wait", "response", "local_wait", "utilisation", "imbalance", "split", "extension", "transfers", "gigabytes", "transfer_time"}

// Estimate is a mean over the runs, and half of its confidence interval of 95 %. A value is nil if
// there is none.
type Estimate struct {
	Mean *float64 `json:"mean"`
	Half *float64 `json:"half_interval"`
}

func estimate(values []float64) (e Estimate) {
	mean, half := outcome.Interval(values)
	if !math.IsNaN(mean) {
		e.Mean = &mean
	}
	if !math.IsNaN(half) {
		e.Half = &half
	}
	return e
}

// Difference is an estimate of a difference within the runs.
type Difference struct {
	Estimate
	Verdict string `json:"verdict"` // more, less, equal, or undecided: within the noise of the runs
}

func difference(values []float64) Difference {
	d := Difference{estimate(values), string(IsUndecided)}
	switch mean, half := outcome.Interval(values); {
	case mean-half > 0:
		d.Verdict = "more"
	case mean+half < 0:
		d.Verdict = "less"
	case mean == 0 && half == 0:
		d.Verdict = "equal"
	}
	return d
}

// PlacementRow holds the figures of a workload under a policy.
type PlacementRow struct {
	Workload string                `json:"workload"`
	Policy   string                `json:"policy"`
	Queue    string                `json:"queue"` // where jobs wait: cluster or koala
	Columns  map[string]Estimate   `json:"columns"`
	Clusters []Estimate            `json:"clusters"` // utilisation of each cluster in percent
	Against  map[string]Difference `json:"against_earliest,omitempty"`
}

// PlacementResult is the result of the experiment.
type PlacementResult struct {
	Parameters Placement          `json:"parameters"`
	Clusters   []PlacementCluster `json:"clusters"`
	Bandwidth  [][]float64        `json:"bandwidth"` // gigabits per second from cluster to cluster
	Runs       int                `json:"runs"`
	Seed       uint64             `json:"seed"`
	Rows       []PlacementRow     `json:"rows"`
	Findings   []KoalaFinding     `json:"findings"`
}

// PlacementCluster is a cluster of the DAS-3.
type PlacementCluster struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
}

// Run plays workloads under Earliest and the given policies, that many times with seeds from seed on.
// All policies get the same jobs in a run. progress, if not nil, is called after each workload of a run.
func (p Placement) Run(ctx context.Context, runs int, seed uint64, workloads []string, policies []place.Policy, workers int, progress func()) (PlacementResult, error) {
	if err := p.Validate(workloads); err != nil {
		return PlacementResult{}, err
	}
	ways := placementWays(policies)
	played := make([][][]placementFigures, len(workloads)) // by workload, way, and run
	for i := range played {
		played[i] = make([][]placementFigures, len(ways))
		for k := range ways {
			played[i][k] = make([]placementFigures, runs)
		}
	}
	err := each(ctx, len(workloads)*runs, workers, func(ctx context.Context, i int) error {
		w, run := i%len(workloads), i/len(workloads)
		jobs := p.draw(workloads[w], seed+uint64(run))
		for k, way := range ways {
			g := newPlacementGrid(p, way, jobs, seed+uint64(run))
			if err := g.play(ctx); err != nil {
				return fmt.Errorf("%s, %s: %w", workloads[w], way.policy, err)
			}
			played[w][k][run] = g.figures()
		}
		return nil
	}, progress)
	if err != nil {
		return PlacementResult{}, err
	}
	result := PlacementResult{Parameters: p, Bandwidth: networks[p.Network](), Runs: runs, Seed: seed}
	for c, n := range das3 {
		result.Clusters = append(result.Clusters, PlacementCluster{das3Names[c], n})
	}
	for w, name := range workloads {
		for k, way := range ways {
			row := placementRow(played[w][k], played[w][0])
			row.Workload, row.Policy, row.Queue = name, string(way.policy), way.queue
			if k == 0 {
				row.Against = nil
			}
			result.Rows = append(result.Rows, row)
		}
	}
	result.Findings = p.findings(workloads, ways, played)
	return result, nil
}

// placementFigures holds the figures of one run.
type placementFigures struct {
	columns  map[string]float64 // NaN if there is no such figure
	clusters []float64
}

// placementRow returns the estimates over the runs, and the differences from the first policy.
func placementRow(runs, first []placementFigures) PlacementRow {
	row := PlacementRow{Columns: map[string]Estimate{}, Against: map[string]Difference{}}
	values, differences := make([]float64, len(runs)), make([]float64, len(runs))
	for _, column := range PlacementColumns {
		for i := range runs {
			values[i] = runs[i].columns[column]
			differences[i] = values[i] - first[i].columns[column]
		}
		row.Columns[column], row.Against[column] = estimate(values), difference(differences)
	}
	for c := range das3 {
		for i := range runs {
			values[i] = runs[i].clusters[c]
		}
		row.Clusters = append(row.Clusters, estimate(values))
	}
	return row
}
