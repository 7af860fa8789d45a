package slurmctl

import "strings"

// Capabilities says whether growth by merge works on a cluster with this
// configuration, and why or why not, in words.
func Capabilities(cfg Config) (merge bool, reasons []string) {
	if !strings.Contains(cfg.Values["SchedulerParameters"], "permit_job_expansion") {
		reasons = append(reasons, "SchedulerParameters has no permit_job_expansion")
	}
	if strings.Contains(strings.ToLower(cfg.Values["PrologFlags"]), "contain") {
		reasons = append(reasons, "PrologFlags has Contain")
	}
	return len(reasons) == 0, reasons
}
