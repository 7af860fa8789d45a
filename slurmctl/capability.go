package slurmctl

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The releases between which growth by merge was tried on real clusters, and the first release that
// resized a job repeatedly without slurmdbd. 22.05 needs slurmdbd; the releases in between were not
// tried. 20.11 does not contact idle nodes.
const (
	firstMergeRelease     = 2011
	lastMergeRelease      = 2605
	firstResizeWithoutDBD = 2411
	firstContact          = 2108
	firstSortedList       = 2411
	firstSignalAlone      = 2405
	firstOneNode          = 2605
)

// prologContain lists the PrologFlags under which every job has an extern step: Contain and the
// flags that imply it. A job with a step cannot be merged.
var prologContain = []string{"Contain", "X11", "RunInJob"}

// Capabilities reports whether growth by merge works on a cluster with this configuration, and the
// reasons. Each reason is a clause without a full stop.
func Capabilities(cfg Config) (merge bool, reasons []string) {
	release, err := parseRelease(cfg.Version)
	switch {
	case err != nil:
		reasons = append(reasons, fmt.Sprintf("the Slurm version %q is not understood", oneLine(cfg.Version, 40)))
	case release < firstMergeRelease || release > lastMergeRelease:
		reasons = append(reasons, fmt.Sprintf("merging was never tried on Slurm %s (it was from 20.11 to 26.05)", cfg.Version))
	case ResizesOnce(cfg):
		reasons = append(reasons, fmt.Sprintf("Slurm %s without slurmdbd resizes a job only once", cfg.Version))
	}
	if !cfg.Has("permit_job_expansion") {
		reasons = append(reasons, "SchedulerParameters has no permit_job_expansion")
	}
	if cfg.Has("disable_job_shrink") {
		reasons = append(reasons, "SchedulerParameters has disable_job_shrink, so that merged nodes could not be taken back")
	}
	for _, flag := range prologContain {
		if cfg.HasPrologFlag(flag) {
			reasons = append(reasons, fmt.Sprintf("PrologFlags has %s, under which Slurm merges no jobs", flag))
			break
		}
	}
	// An exclusive job then has a list of GRES, empty even on nodes without any, and Slurm checks
	// for that list (22.05: measured; to 26.05: source).
	if gres := cfg.List("GresTypes"); len(gres) > 0 {
		reasons = append(reasons, fmt.Sprintf("GresTypes has %s, and Slurm merges no job with whole nodes where there are generic resources", strings.Join(gres, ", ")))
	}
	if len(reasons) > 0 {
		return false, reasons
	}
	return true, append(reasons, fmt.Sprintf("Slurm %s can merge jobs, permit_job_expansion is set, PrologFlags has no Contain and GresTypes nothing", cfg.Version))
}

// BesideEpilog returns what speaks against growth by merge on nodes with an Epilog, or "" if nodes
// have none. Slurm treats nodes as idle as soon as a resize releases them. Other jobs can get such
// a node while its Epilog still runs, whereas they wait for the Epilog of a job that ends. An
// expander's Epilog runs beside the steps of the job that it was merged into (22.05: measured; to
// 26.05: source, job_mgr.c: abort_job_on_nodes). Only the site can tell whether the Epilog harms
// these steps.
func BesideEpilog(cfg Config) string {
	if cfg.Epilog() == "" {
		return ""
	}
	return "the site has an Epilog, and while it runs on nodes that a merged job gives back Slurm starts other jobs there"
}

// ResizeNeedsSlurmdbd reports whether slurmdbd must answer while a job is resized. Otherwise Slurm
// up to 23.11 (source; seen on 22.05) waits for the job's database index forever and refuses every
// further change of the job until it ends.
func ResizeNeedsSlurmdbd(cfg Config) bool {
	release, err := parseRelease(cfg.Version)
	return err == nil && release < firstResizeWithoutDBD && cfg.AccountingStorageType() == "slurmdbd"
}

// ForgetsRequeued reports whether slurmdbd opens no row for the next run of a job that was resized and then requeued, until it
// is resized again, if only to the nodes that it has (measured: 22.05.8 does, 24.11.5 does not).
func ForgetsRequeued(cfg Config) bool { return ResizeNeedsSlurmdbd(cfg) }

// SortsReservations reports whether Slurm tries the reservations that a job lists in the order in which they were created,
// and not in that of the list (source; measured: 24.11.5 does, 22.05.8 does not).
func SortsReservations(cfg Config) bool {
	release, err := parseRelease(cfg.Version)
	return err == nil && release >= firstSortedList
}

// PlacesOneByWeight reports whether Slurm gives a job of one node the node of the least weight that suits it, and of equals the
// first one, whatever the topology: also a node outside of all switches and blocks (source: _get_one_res of job_test.c, from
// 26.05.0 on; measured: 26.05.5 does, 24.11.5 does not).
func PlacesOneByWeight(cfg Config) bool {
	release, err := parseRelease(cfg.Version)
	return err == nil && release >= firstOneNode
}

// SearchesAgain reports whether Slurm, where it finds no nodes for a job, looks again without one node after the other
// (source: common_topo_choose_nodes of common_topo.c, from 26.05.0 on). Before, it leaves out only nodes with few CPUs.
func SearchesAgain(cfg Config) bool { return PlacesOneByWeight(cfg) }

// SignalsAlone reports whether scancel has slurmctld signal a job without reading the whole queue first (source: from 23.11.6
// on, with --ctld).
func SignalsAlone(cfg Config) bool {
	release, err := parseRelease(cfg.Version)
	return err == nil && release >= firstSignalAlone
}

// ResizesOnce reports whether a job can shrink only once in its life. Without slurmdbd, Slurm up to
// 23.11 waits for the job's database index forever (22.05: measured).
func ResizesOnce(cfg Config) bool {
	release, err := parseRelease(cfg.Version)
	return err == nil && release < firstResizeWithoutDBD && cfg.AccountingStorageType() != "slurmdbd"
}

// ContactsIdle reports whether Contact has an effect on this release, or may have.
func ContactsIdle(cfg Config) bool {
	release, err := parseRelease(cfg.Version)
	return err != nil || release >= firstContact
}

// BatchStartTimeout returns how long a batch job must have run before slurmctld takes its script for lost if its node does not
// report it. Slurm's default is 10 s, and 65,535 s are the most.
func BatchStartTimeout(cfg Config) time.Duration {
	words := strings.Fields(cfg.Values["BatchStartTimeout"])
	if len(words) > 0 {
		if n, err := strconv.ParseUint(words[0], 10, 16); err == nil {
			return time.Duration(n) * time.Second
		}
	}
	return 10 * time.Second
}

// parseRelease returns the release as a number: "22.05.8" is 2205.
func parseRelease(version string) (int, error) {
	m := versionPattern().FindStringSubmatch(version)
	if m == nil {
		return 0, fmt.Errorf("version %q is not understood", oneLine(version, 40))
	}
	var year, month int
	if _, err := fmt.Sscanf(m[1]+" "+m[2], "%d %d", &year, &month); err != nil {
		return 0, err
	}
	return 100*year + month, nil
}
