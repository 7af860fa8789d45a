package outcome

import "github.com/evoslurm/evoslurm/adapter/lab/trace"

// Noticeable is from how many seconds on a job counts as noticeably later: what a live Slurm makes of the
// same jobs twice differs by less (two cycles of its backfill).
const Noticeable = 60

// Neighbours is how stock jobs fared in one outcome beside another: when each started.
type Neighbours struct {
	Stock      int          `json:"stock"`      // jobs that started in both
	Later      int          `json:"later"`      // that started later than in the other outcome
	Noticeably int          `json:"noticeably"` // by more than Noticeable
	Earlier    int          `json:"earlier"`
	By         trace.Spread `json:"by"`     // seconds by which those start later
	Change     float64      `json:"change"` // mean over all, in seconds; negative: sooner
	Lost       int          `json:"lost"`   // that start in the other outcome alone
}

// Compare compares the stock jobs of a run with the same jobs of another. Jobs are told apart by their place in the list.
func Compare(run, other []Job) Neighbours {
	var n Neighbours
	var by []float64
	sum := 0.
	for i := range min(len(run), len(other)) {
		switch a, b := &run[i], &other[i]; {
		case a.Evolving || a.ID != b.ID || b.Start < 0:
		case a.Start < 0:
			n.Lost++
		default:
			n.Stock++
			d := float64(a.Start - b.Start)
			sum += d
			switch {
			case d > 0:
				n.Later++
				by = append(by, d)
			case d < 0:
				n.Earlier++
			}
			if d > Noticeable {
				n.Noticeably++
			}
		}
	}
	if n.Stock > 0 {
		n.Change = sum / float64(n.Stock)
	}
	n.By = trace.SpreadOf(by)
	return n
}
