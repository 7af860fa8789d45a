package sim

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

// Verdict says whether a finding holds.
type Verdict string

// A finding is undecided where a difference that it claims is within the noise of the runs.
const (
	Holds       Verdict = "holds"
	HoldsNot    Verdict = "does not hold"
	IsUndecided Verdict = "undecided"
)

// KoalaFinding is a finding of section VII, and whether it holds here.
type KoalaFinding struct {
	Says    string  `json:"says"`
	Verdict Verdict `json:"verdict"`
	Figures string  `json:"figures"`
	Why     string  `json:"why,omitempty"` // why it does not hold with the default parameters
}

// koalaSet holds the rows of Wm, Wmr, W'm, W'mr under FPSMA and under EGS.
type koalaSet struct{ f, e [4]KoalaRun }

const wm, wmr, pm, pmr = 0, 1, 2, 3

// claim is a finding of the text. It holds where all margins are above 0.
type claim struct {
	says    string
	margins func(s *koalaSet) []float64
	figures func(s *koalaSet) string
	why     string // see KoalaFinding
}

// findings checks section VII. It needs rows of fpsma and of egs; otherwise it returns nothing. each holds the runs of every row.
func (k Koala) findings(rows []KoalaRun, each [][]KoalaRun) (all []KoalaFinding) {
	mean, complete := setOf(rows)
	if !complete {
		return nil
	}
	runs := make([]koalaSet, len(each))
	for i, rows := range each {
		runs[i], _ = setOf(rows)
	}
	for _, c := range koalaClaims {
		found := KoalaFinding{Says: c.says, Verdict: c.verdict(runs), Figures: c.figures(&mean)}
		if found.Verdict == HoldsNot && k == DefaultKoala {
			found.Why = c.why
		}
		all = append(all, found)
	}
	return all
}

// setOf sorts rows, and reports whether all are there.
func setOf(rows []KoalaRun) (s koalaSet, complete bool) {
	row := map[string]KoalaRun{}
	for _, r := range rows {
		row[r.Workload+" "+r.Policy] = r
	}
	for i, w := range []string{"Wm", "Wmr", "W'm", "W'mr"} {
		var okF, okE bool
		s.f[i], okF = row[w+" fpsma"]
		if s.e[i], okE = row[w+" egs"]; !okF || !okE {
			return s, false
		}
	}
	return s, true
}

func (c *claim) verdict(runs []koalaSet) Verdict {
	return decide(len(runs), func(run int) []float64 { return c.margins(&runs[run]) })
}

// decide compares each margin's confidence interval of 95 % over the runs with 0. A single run decides nothing.
func decide(runs int, margins func(run int) []float64) Verdict {
	verdict := Holds
	for i := range margins(0) {
		values := make([]float64, runs)
		for run := range values {
			values[run] = margins(run)[i]
		}
		mean, half := outcome.Interval(values)
		switch {
		case mean+half <= 0:
			return HoldsNot
		case !(mean-half > 0): // or there is no interval
			verdict = IsUndecided
		}
	}
	return verdict
}

// koalaClaims lists the findings of section VII.
var koalaClaims = []claim{
	{"PRA: with Wmr relatively few malleable jobs retain their initial size of 2 (below a third)",
		func(s *koalaSet) []float64 { return []float64{33 - s.f[wmr].Stuck, 33 - s.e[wmr].Stuck} },
		func(s *koalaSet) string {
			return fmt.Sprintf("FPSMA %.0f %%, EGS %.0f %%", s.f[wmr].Stuck, s.e[wmr].Stuck)
		}, ""},
	{"PRA: EGS gives more processors than FPSMA on average",
		func(s *koalaSet) []float64 {
			return []float64{s.e[wm].MeanSize - s.f[wm].MeanSize, s.e[wmr].MeanSize - s.f[wmr].MeanSize}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("Wm %.2f against %.2f, Wmr %.2f against %.2f", s.e[wm].MeanSize, s.f[wm].MeanSize, s.e[wmr].MeanSize, s.f[wmr].MeanSize)
		}, ""},
	{"PRA: and in maximum",
		func(s *koalaSet) []float64 {
			return []float64{s.e[wm].MaxSize - s.f[wm].MaxSize, s.e[wmr].MaxSize - s.f[wmr].MaxSize}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("Wm %.2f against %.2f, Wmr %.2f against %.2f", s.e[wm].MaxSize, s.f[wm].MaxSize, s.e[wmr].MaxSize, s.f[wmr].MaxSize)
		}, "FPSMA gives all that is free to one job, so it has the largest"},
	{"PRA: with FPSMA short applications end before it is their turn; with EGS fewer are stuck",
		func(s *koalaSet) []float64 {
			return []float64{s.f[wm].StuckFT - s.e[wm].StuckFT, s.f[wmr].StuckFT - s.e[wmr].StuckFT}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("FT stuck at 2: Wm %.0f %% against %.0f %%, Wmr %.0f %% against %.0f %%", s.f[wm].StuckFT, s.e[wm].StuckFT, s.f[wmr].StuckFT, s.e[wmr].StuckFT)
		}, ""},
	{"PRA: execution times are below 200 s (FT) or above 400 s (GADGET 2) (nine tenths of each at least)",
		func(s *koalaSet) []float64 { short, long := s.apart(); return []float64{short - 90, long - 90} },
		func(s *koalaSet) string {
			short, long := s.apart()
			return fmt.Sprintf("at least %.0f %% of FT, %.0f %% of GADGET 2", short, long)
		}, "by the speed-up that the text gives, GADGET 2 takes less than 400 s on 5 processors and more, and many jobs have these"},
	{"PRA: Wm performs better than Wmr",
		func(s *koalaSet) []float64 {
			return []float64{s.f[wmr].Execution - s.f[wm].Execution, s.f[wmr].Response - s.f[wm].Response, s.e[wmr].Execution - s.e[wm].Execution, s.e[wmr].Response - s.e[wm].Response}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("response %.0f s against %.0f s (FPSMA), %.0f s against %.0f s (EGS)", s.f[wm].Response, s.f[wmr].Response, s.e[wm].Response, s.e[wmr].Response)
		}, ""},
	{"PRA: with Wm EGS leads to a higher utilisation",
		func(s *koalaSet) []float64 { return []float64{s.e[wm].Utilisation - s.f[wm].Utilisation} },
		func(s *koalaSet) string {
			return fmt.Sprintf("%.2f %% against %.2f %%", s.e[wm].Utilisation, s.f[wm].Utilisation)
		}, "larger jobs end sooner: while arrivals are given, the area stays about the same"},
	{"PRA: utilisation is higher with Wm than with Wmr",
		func(s *koalaSet) []float64 {
			return []float64{s.e[wm].Utilisation - s.e[wmr].Utilisation, s.f[wm].Utilisation - s.f[wmr].Utilisation}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("EGS %.2f %% against %.2f %%, FPSMA %.2f %% against %.2f %%", s.e[wm].Utilisation, s.e[wmr].Utilisation, s.f[wm].Utilisation, s.f[wmr].Utilisation)
		}, ""},
	{"PRA: many more grow operations with Wm than with Wmr, and more with EGS than with FPSMA",
		func(s *koalaSet) []float64 {
			return []float64{s.e[wm].Grows - s.e[wmr].Grows, s.f[wm].Grows - s.f[wmr].Grows, s.e[wm].Grows - s.f[wm].Grows, s.e[wmr].Grows - s.f[wmr].Grows}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("Wm %.0f and %.0f, Wmr %.0f and %.0f (EGS and FPSMA)", s.e[wm].Grows, s.f[wm].Grows, s.e[wmr].Grows, s.f[wmr].Grows)
		}, ""},
	{"PWA: beyond a certain time no change can be triggered (a tenth of them in the second half)",
		func(s *koalaSet) []float64 {
			return []float64{10 - s.f[pm].Late, 10 - s.f[pmr].Late, 10 - s.e[pm].Late, 10 - s.e[pmr].Late}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("up to %.0f %% come in the second half", max(s.f[pm].Late, s.f[pmr].Late, s.e[pm].Late, s.e[pmr].Late))
		}, "the load is the same from beginning to end here, so jobs that end always leave room for some growth"},
	{"PWA: many jobs are stuck at their minimum, whatever the workload and the policy (half of them)",
		func(s *koalaSet) []float64 {
			return []float64{s.f[pm].Stuck - 50, s.f[pmr].Stuck - 50, s.e[pm].Stuck - 50, s.e[pmr].Stuck - 50}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("at least %.0f %%", min(s.f[pm].Stuck, s.f[pmr].Stuck, s.e[pm].Stuck, s.e[pmr].Stuck))
		}, ""},
	{"PWA: more so with EGS",
		func(s *koalaSet) []float64 {
			return []float64{s.e[pm].Stuck - s.f[pm].Stuck, s.e[pmr].Stuck - s.f[pmr].Stuck}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("W'm %.1f %% against %.1f %%, W'mr %.1f %% against %.1f %%", s.e[pm].Stuck, s.f[pm].Stuck, s.e[pmr].Stuck, s.f[pmr].Stuck)
		}, "the threshold leaves room for a few growths, which EGS shares among more jobs"},
	{"PWA: the execution time is almost the same in all four (within a tenth)",
		func(s *koalaSet) []float64 {
			fastest, slowest := s.fourTimes()
			return []float64{1.1*fastest - slowest}
		},
		func(s *koalaSet) string {
			fastest, slowest := s.fourTimes()
			return fmt.Sprintf("%.0f s to %.0f s", fastest, slowest)
		}, ""},
	{"PWA: GADGET 2 takes 600 s, 30 % more than under PRA (540 s at least, 20 to 40 %)",
		func(s *koalaSet) []float64 {
			waiting, running := s.gadgets()
			return []float64{waiting - 540, waiting/running - 1.2, 1.4 - waiting/running}
		},
		func(s *koalaSet) string {
			waiting, running := s.gadgets()
			return fmt.Sprintf("%.0f s, %+.0f %%", waiting, 100*(waiting/running-1))
		}, ""},
	{"PWA: the response time is far worse for EGS with W'm, by its wait (half as much again)",
		func(s *koalaSet) []float64 {
			return []float64{s.e[pm].Response - 1.5*s.otherResponses(), s.e[pm].Wait - s.f[pm].Wait}
		},
		func(s *koalaSet) string {
			return fmt.Sprintf("%.0f s against %.0f s at most; waits %.0f s against %.0f s of FPSMA", s.e[pm].Response, s.otherResponses(), s.e[pm].Wait, s.f[pm].Wait)
		}, "nobody waits: 300 jobs of 2 processors do not fill the DAS-3, and the text does not tell the load of other users in that run"},
	{"PWA: FPSMA, favouring long-running jobs, has GADGET 2 execute faster than EGS with W'm",
		func(s *koalaSet) []float64 { return []float64{s.e[pm].Gadget - s.f[pm].Gadget} },
		func(s *koalaSet) string { return fmt.Sprintf("%.0f s against %.0f s", s.f[pm].Gadget, s.e[pm].Gadget) },
		"hardly a job grows under PWA, so the policies do nearly the same"},
}

// apart returns the least percentages of FT jobs below 200 s, and of GADGET 2 jobs above 400 s, under PRA.
func (s *koalaSet) apart() (short, long float64) {
	short, long = 100, 100
	for _, r := range []KoalaRun{s.f[wm], s.f[wmr], s.e[wm], s.e[wmr]} {
		short, long = min(short, r.Short), min(long, r.Long)
	}
	return short, long
}

// fourTimes returns the least and the greatest mean execution time under PWA.
func (s *koalaSet) fourTimes() (fastest, slowest float64) {
	all := []float64{s.f[pm].Execution, s.f[pmr].Execution, s.e[pm].Execution, s.e[pmr].Execution}
	return slices.Min(all), slices.Max(all)
}

// gadgets returns how long GADGET 2 takes under PWA and under PRA.
func (s *koalaSet) gadgets() (waiting, running float64) {
	return (s.f[pm].Gadget + s.e[pm].Gadget) / 2, (s.f[wm].Gadget + s.e[wm].Gadget) / 2
}

// otherResponses returns the longest response time under PWA but that of EGS with W'm.
func (s *koalaSet) otherResponses() float64 {
	return max(s.f[pm].Response, s.f[pmr].Response, s.e[pmr].Response)
}
