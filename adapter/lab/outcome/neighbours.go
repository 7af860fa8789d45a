package outcome

import "github.com/evoslurm/evoslurm/adapter/lab/trace"

// Noticeable is the delay in seconds from which a job counts as noticeably later. Two runs of the
// same jobs on a live Slurm differ by less (two cycles of its backfill).
const Noticeable = 60

// Neighbours compares the starts of stock jobs in one outcome with another.
type Neighbours struct {
	Stock      int          `json:"stock"`      // jobs that started in both
	Later      int          `json:"later"`      // jobs that started later than in the other outcome
	Noticeably int          `json:"noticeably"` // later by more than Noticeable
	Earlier    int          `json:"earlier"`
	By         trace.Spread `json:"by"`     // delays of these jobs, in seconds
	Change     float64      `json:"change"` // mean over all, in seconds; negative if sooner
	Lost       int          `json:"lost"`   // jobs that started only in the other outcome
}

// Compare compares the stock jobs of a run with the same jobs in another, by their positions.
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
