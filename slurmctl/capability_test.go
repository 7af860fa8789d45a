package slurmctl

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestCapabilities(t *testing.T) {
	const slurmdbd, none = "accounting_storage/slurmdbd", ""
	for _, c := range []struct {
		name, version, storage, scheduler, prolog, gres string

		merge   bool
		reasons []string // a word from each reason
	}{
		{"Debian 12", "22.05.8", slurmdbd, "permit_job_expansion", "", "", true, []string{"22.05.8 can merge"}},
		{"among others", "24.11.5", none, "bf_interval=5,permit_job_expansion,sched_interval=5", "", "", true, []string{"can merge"}},
		{"other case", "24.11.5", none, "PERMIT_JOB_EXPANSION", "", "", true, []string{"can merge"}},
		{"oldest", "20.11.4", slurmdbd, "permit_job_expansion", "", "", true, []string{"can merge"}},
		{"newest", "26.05.5", none, "permit_job_expansion", "", "", true, []string{"can merge"}},
		{"GRES", "26.05.5", none, "permit_job_expansion", "", "gpu,nic", false, []string{"GresTypes has gpu, nic"}},
		{"prolog on all nodes", "26.05.5", none, "permit_job_expansion", "Alloc", "", true, []string{"can merge"}},
		{"nothing set", "24.11.5", none, "", "", "", false, []string{"no permit_job_expansion"}},
		{"a name that begins so", "24.11.5", none, "permit_job_expansions", "", "", false, []string{"no permit_job_expansion"}},
		{"contained", "24.11.5", none, "permit_job_expansion", "Alloc,Contain", "", false, []string{"Contain"}},
		{"contained by X11", "24.11.5", none, "permit_job_expansion", "x11", "", false, []string{"X11"}},
		{"contained by RunInJob", "24.11.5", none, "permit_job_expansion", "RunInJob", "", false, []string{"RunInJob"}},
		{"no shrink", "24.11.5", none, "permit_job_expansion,disable_job_shrink", "", "", false, []string{"disable_job_shrink"}},
		{"no slurmdbd", "22.05.8", none, "permit_job_expansion", "", "", false, []string{"only once"}},
		{"no slurmdbd", "22.05.8", "accounting_storage/none", "permit_job_expansion", "", "", false, []string{"only once"}},
		{"no slurmdbd, not tried", "23.11.1", none, "permit_job_expansion", "", "", false, []string{"only once"}},
		{"too old", "20.02.7", slurmdbd, "permit_job_expansion", "", "", false, []string{"never tried"}},
		{"too new", "26.11.0", slurmdbd, "permit_job_expansion", "", "", false, []string{"never tried"}},
		{"pre-release", "25.05.0-0rc1", none, "permit_job_expansion", "", "", true, []string{"can merge"}},
		{"no version", "", none, "permit_job_expansion", "", "", false, []string{"not understood"}},
		{"all wrong", "22.05.8", none, "disable_job_shrink", "Contain", "", false, []string{"only once", "no permit_job_expansion", "disable_job_shrink", "Contain"}},
	} {
		merge, reasons := Capabilities(Config{Version: c.version, Values: map[string]string{
			"AccountingStorageType": c.storage, "SchedulerParameters": c.scheduler, "PrologFlags": c.prolog, "GresTypes": c.gres,
		}})
		ok := merge == c.merge && len(reasons) == len(c.reasons)
		for i := range c.reasons {
			ok = ok && strings.Contains(reasons[i], c.reasons[i])
		}
		if !ok {
			t.Errorf("%s (%s): merge %v because %q; want %v because %q", c.name, c.version, merge, reasons, c.merge, c.reasons)
		}
	}
}

func TestSortsReservations(t *testing.T) {
	for version, want := range map[string]bool{"22.05.8": false, "24.05.9": false, "24.11.5": true, "26.05.5": true, "": false} {
		if got := SortsReservations(Config{Version: version}); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestPlacesOneByWeight(t *testing.T) {
	for version, want := range map[string]bool{"22.05.8": false, "24.11.5": false, "25.11.7": false, "26.05.0": true, "26.05.5": true, "": false} {
		if got := PlacesOneByWeight(Config{Version: version}); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestBesideEpilog(t *testing.T) {
	for line, want := range map[string]bool{
		"Epilog = (null)": false, "Epilog = /etc/slurm/epilog": true, "Epilog[0] = /etc/slurm/a\nEpilog[1] = /etc/slurm/b": true, "EpilogSlurmctld = /etc/slurm/c": false, "TaskEpilog = /d": false,
	} {
		cfg, err := parseConfig("SLURM_VERSION = 24.11.5\n" + line + "\n")
		must.OK(t, err)
		if got := BesideEpilog(cfg); (got != "") != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// The output of a real cluster's scontrol, without and with one of its lines changed.
func TestCapabilitiesOfRealOutput(t *testing.T) {
	text := must.Read(t, "testdata/22.05/config.txt")
	for change, want := range map[string]bool{"": true, "PrologFlags             = Contain": false} {
		cfg, err := parseConfig(change + "\n" + string(text))
		must.OK(t, err)
		if merge, reasons := Capabilities(cfg); merge != want {
			t.Errorf("%q: merge %v because %q", change, merge, reasons)
		}
	}
}

func TestStepMgr(t *testing.T) {
	for _, c := range []struct {
		version, prolog, params string
		possible, always        bool
	}{
		{"24.05.0", "Contain", "enable_stepmgr", true, true},
		{"26.05.5", "Alloc,X11", "max_dbd_msg_action=exit,enable_stepmgr", true, true},
		{"24.11.5", "Alloc,Contain", "", true, false},
		{"24.11.5", "Alloc", "enable_stepmgr", false, false},
		{"23.11.9", "Contain", "enable_stepmgr", false, false},
		{"not understood", "Contain", "", true, false}, // may be a later release
	} {
		possible, always := StepMgr(Config{Version: c.version, Values: map[string]string{"PrologFlags": c.prolog, "SlurmctldParameters": c.params}})
		if possible != c.possible || always != c.always {
			t.Errorf("%+v: %v, %v", c, possible, always)
		}
	}
	// output of 24.11.5, shortened: a pending job and a running job
	for text, want := range map[string]bool{
		"JobId=1 JobName=wrap NodeList= StepMgrEnabled=Yes NumNodes=1-1 NumCPUs=1 ":           true,
		"JobId=2 JobName=agent NodeList=n[1-2] BatchHost=n1 StepMgrEnabled=Yes NumNodes=2 \n": true,
		"JobId=2 JobName=agent NodeList=n[1-2] BatchHost=n1 NumNodes=2 \n":                    false,
	} {
		if got := hasStepMgr(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestFewSwitches reads --switches from what scontrol shows.
func TestFewSwitches(t *testing.T) {
	for text, want := range map[string]struct {
		most int
		wait time.Duration
	}{
		"JobId=1 JobName=a Power= \n":                                  {},
		"JobId=1 JobName=a StdOut=/dev/null Switches=1@00:05:00 \n":    {1, 5 * time.Minute},
		"JobId=1 Switches=3@1-00:00:00 ":                               {3, 24 * time.Hour},
		"JobId=1 Switches=2@00:00:00":                                  {2, 0},
		"JobId=1 Switches=99999999999999999999@00:05:00":               {},
		"JobId=1 Switches=1@99999999999999999999999999":                {},
		"JobId=1 Comment=Switches=7@00:01:00 Switches=1@00:02:00 \n":   {1, 2 * time.Minute},
		"JobId=1 Comment=x Switches=7@00:01:00 Switches=1@00:02:00 \n": {7, time.Minute}, // the user's own
	} {
		if most, wait := fewSwitches(text); most != want.most || wait != want.wait {
			t.Errorf("%q: %d, %v", text, most, wait)
		}
	}
}

func TestBatchStartTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{"10 sec": 10 * time.Second, "36000 sec": 10 * time.Hour, "": 10 * time.Second, "never": 10 * time.Second, "-1 sec": 10 * time.Second, "70000 sec": 10 * time.Second} {
		if got := BatchStartTimeout(Config{Values: map[string]string{"BatchStartTimeout": text}}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
