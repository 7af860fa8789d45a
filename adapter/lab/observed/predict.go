package observed

import (
	"math"
	"slices"
	"time"
)

// Errors says how far predictions were from the actual starts, in seconds.
type Errors struct {
	Of     int    `json:"of"`
	Median Figure `json:"median"` // of the absolute error
	P95    Figure `json:"p95"`    // of the absolute error
	Bias   Figure `json:"bias"`   // mean error; positive if jobs start later than predicted
}

// Prediction compares predictions made so long before the starts of jobs.
type Prediction struct {
	Lead     int64   `json:"lead"`      // seconds
	None     int     `json:"none"`      // of Ours, those for which Slurm had no estimate
	Ours     *Errors `json:"ours"`      // null: none was made
	OursSame *Errors `json:"ours_same"` // for the jobs with an estimate of Slurm's
	Slurm    *Errors `json:"slurm"`     // for the same jobs
}

// Kept says how many promises of a start within some time were kept.
type Kept struct {
	Promised int    `json:"promised"`
	Kept     Figure `json:"kept"` // share, 0 … 1
}

// Calibration says what share of the starts promised within a time came within it.
type Calibration struct {
	Within int64 `json:"within"` // seconds
	Ours   *Kept `json:"ours"`   // null: none was promised
	Slurm  *Kept `json:"slurm"`
}

// withins are the times of [Calibration].
var withins = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// promise is a prediction of a job's start. A zero time means that there is none.
type promise struct {
	made        time.Time
	ours, slurm time.Time
	start       time.Time // when the job started
	until       time.Time // the end of the record
}

// errors compares predictions of starts.
func (m Method) errors(all []promise, predicted func(promise) time.Time) *Errors {
	var x, absolute []observation
	for _, p := range all {
		at := predicted(p)
		if at.IsZero() {
			continue
		}
		block, by := m.block(p.start), p.start.Sub(at).Seconds()
		x, absolute = append(x, observation{by, block}), append(absolute, observation{math.Abs(by), block})
	}
	if len(x) == 0 {
		return nil
	}
	of := m.quantiles(absolute, .5, .95)
	return &Errors{len(x), of[0], of[1], m.mean(x)}
}

func ours(p promise) time.Time  { return p.ours }
func slurm(p promise) time.Time { return p.slurm }

// predictions compares the predictions with one lead.
func (m Method) predictions(lead time.Duration, all []promise) Prediction {
	all = slices.DeleteFunc(slices.Clone(all), func(p promise) bool { return p.ours.IsZero() || p.start.IsZero() })
	both := slices.DeleteFunc(slices.Clone(all), func(p promise) bool { return p.slurm.IsZero() })
	return Prediction{Lead: int64(lead / time.Second), None: len(all) - len(both), Ours: m.errors(all, ours), OursSame: m.errors(both, ours), Slurm: m.errors(both, slurm)}
}

// calibrations counts which promises were kept. A promise counts only if its time is over within the record.
func (m Method) calibrations(all []promise) (rows []Calibration) {
	for _, within := range withins {
		kept := func(predicted func(promise) time.Time) *Kept {
			var x []observation
			for _, p := range all {
				at, end := predicted(p), p.made.Add(within)
				switch {
				case at.IsZero() || at.After(end) || end.After(p.until):
				case !p.start.IsZero() && !p.start.After(end):
					x = append(x, observation{1, m.block(p.made)})
				default:
					x = append(x, observation{0, m.block(p.made)})
				}
			}
			if len(x) == 0 {
				return nil
			}
			return &Kept{len(x), m.mean(x)}
		}
		rows = append(rows, Calibration{int64(within / time.Second), kept(ours), kept(slurm)})
	}
	return rows
}
