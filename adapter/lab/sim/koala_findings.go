package sim

import "fmt"

// KoalaFinding is a finding of section VII, and whether it holds here.
type KoalaFinding struct {
	Says    string `json:"says"`
	Holds   bool   `json:"holds"`
	Figures string `json:"figures"`
}

// findings checks section VII. It needs rows of fpsma and of egs; otherwise it returns nothing.
func findings(rows []KoalaRun) (all []KoalaFinding) {
	row := map[string]KoalaRun{}
	for _, r := range rows {
		row[r.Workload+" "+r.Policy] = r
	}
	var f, e [4]KoalaRun // Wm, Wmr, W'm, W'mr under FPSMA and EGS
	for i, w := range []string{"Wm", "Wmr", "W'm", "W'mr"} {
		var okF, okE bool
		f[i], okF = row[w+" fpsma"]
		e[i], okE = row[w+" egs"]
		if !okF || !okE {
			return nil
		}
	}
	const wm, wmr, pm, pmr = 0, 1, 2, 3
	add := func(says string, holds bool, figures string, args ...any) {
		all = append(all, KoalaFinding{says, holds, fmt.Sprintf(figures, args...)})
	}
	add("PRA: with Wmr relatively few malleable jobs retain their initial size of 2 (below a third)",
		f[wmr].Stuck < 33 && e[wmr].Stuck < 33, "FPSMA %.0f %%, EGS %.0f %%", f[wmr].Stuck, e[wmr].Stuck)
	add("PRA: EGS gives more processors than FPSMA on average",
		e[wm].MeanSize > f[wm].MeanSize && e[wmr].MeanSize > f[wmr].MeanSize, "Wm %.2f against %.2f, Wmr %.2f against %.2f", e[wm].MeanSize, f[wm].MeanSize, e[wmr].MeanSize, f[wmr].MeanSize)
	add("PRA: and in maximum",
		e[wm].MaxSize > f[wm].MaxSize && e[wmr].MaxSize > f[wmr].MaxSize, "Wm %.2f against %.2f, Wmr %.2f against %.2f", e[wm].MaxSize, f[wm].MaxSize, e[wmr].MaxSize, f[wmr].MaxSize)
	add("PRA: with FPSMA short applications end before it is their turn; with EGS fewer are stuck",
		f[wm].StuckFT > e[wm].StuckFT && f[wmr].StuckFT > e[wmr].StuckFT, "FT stuck at 2: Wm %.0f %% against %.0f %%, Wmr %.0f %% against %.0f %%", f[wm].StuckFT, e[wm].StuckFT, f[wmr].StuckFT, e[wmr].StuckFT)
	short, long := 100.0, 100.0
	for _, r := range []KoalaRun{f[wm], f[wmr], e[wm], e[wmr]} {
		short, long = min(short, r.Short), min(long, r.Long)
	}
	add("PRA: execution times are below 200 s (FT) or above 400 s (GADGET 2) (nine tenths of each at least)",
		short >= 90 && long >= 90, "at least %.0f %% of FT, %.0f %% of GADGET 2", short, long)
	add("PRA: Wm performs better than Wmr",
		f[wm].Execution < f[wmr].Execution && f[wm].Response < f[wmr].Response && e[wm].Execution < e[wmr].Execution && e[wm].Response < e[wmr].Response,
		"response %.0f s against %.0f s (FPSMA), %.0f s against %.0f s (EGS)", f[wm].Response, f[wmr].Response, e[wm].Response, e[wmr].Response)
	add("PRA: with Wm EGS leads to a higher utilisation",
		e[wm].Utilisation > f[wm].Utilisation, "%.2f %% against %.2f %%", e[wm].Utilisation, f[wm].Utilisation)
	add("PRA: utilisation is higher with Wm than with Wmr",
		e[wm].Utilisation > e[wmr].Utilisation && f[wm].Utilisation > f[wmr].Utilisation,
		"EGS %.2f %% against %.2f %%, FPSMA %.2f %% against %.2f %%", e[wm].Utilisation, e[wmr].Utilisation, f[wm].Utilisation, f[wmr].Utilisation)
	add("PRA: many more grow operations with Wm than with Wmr, and more with EGS than with FPSMA",
		e[wm].Grows > e[wmr].Grows && f[wm].Grows > f[wmr].Grows && e[wm].Grows > f[wm].Grows && e[wmr].Grows > f[wmr].Grows,
		"Wm %.0f and %.0f, Wmr %.0f and %.0f (EGS and FPSMA)", e[wm].Grows, f[wm].Grows, e[wmr].Grows, f[wmr].Grows)
	late := max(f[pm].Late, f[pmr].Late, e[pm].Late, e[pmr].Late)
	add("PWA: beyond a certain time no change can be triggered (a tenth of them in the second half)",
		late < 10, "up to %.0f %% come in the second half", late)
	least := min(f[pm].Stuck, f[pmr].Stuck, e[pm].Stuck, e[pmr].Stuck)
	add("PWA: many jobs are stuck at their minimum, whatever the workload and the policy (half of them)",
		least >= 50, "at least %.0f %%", least)
	add("PWA: more so with EGS",
		e[pm].Stuck > f[pm].Stuck && e[pmr].Stuck > f[pmr].Stuck, "W'm %.1f %% against %.1f %%, W'mr %.1f %% against %.1f %%", e[pm].Stuck, f[pm].Stuck, e[pmr].Stuck, f[pmr].Stuck)
	fastest, slowest := min(f[pm].Execution, f[pmr].Execution, e[pm].Execution, e[pmr].Execution), max(f[pm].Execution, f[pmr].Execution, e[pm].Execution, e[pmr].Execution)
	add("PWA: the execution time is almost the same in all four (within a tenth)", slowest < 1.1*fastest, "%.0f s to %.0f s", fastest, slowest)
	waiting, running := (f[pm].Gadget+e[pm].Gadget)/2, (f[wm].Gadget+e[wm].Gadget)/2
	add("PWA: GADGET 2 takes 600 s, 30 % more than under PRA (540 s at least, 20 to 40 %)",
		waiting >= 540 && waiting/running > 1.2 && waiting/running < 1.4, "%.0f s, %+.0f %%", waiting, 100*(waiting/running-1))
	others := max(f[pm].Response, f[pmr].Response, e[pmr].Response)
	add("PWA: the response time is far worse for EGS with W'm, by its wait (half as much again)",
		e[pm].Response > 1.5*others && e[pm].Wait > f[pm].Wait, "%.0f s against %.0f s at most; waits %.0f s against %.0f s of FPSMA", e[pm].Response, others, e[pm].Wait, f[pm].Wait)
	add("PWA: FPSMA, favouring long-running jobs, has GADGET 2 execute faster than EGS with W'm",
		f[pm].Gadget < e[pm].Gadget, "%.0f s against %.0f s", f[pm].Gadget, e[pm].Gadget)
	return all
}
