package submit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestAgainstSlurm holds what this package believes of sbatch against the one that is installed.
func TestAgainstSlurm(t *testing.T) {
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	slurm := installed{cluster, cluster.Users()[0]}
	t.Run("options", slurm.testOptions)
	t.Run("values", slurm.testValues)
	t.Run("begin", slurm.testBegin)
	t.Run("directives", slurm.testDirectives)
	t.Run("time", slurm.testTime)
}

// installed is the Slurm of this machine, for one user.
type installed struct {
	*slurmtest.Cluster
	user slurmtest.User
}

func (s installed) sbatch(t *testing.T, args ...string) (string, error) {
	return s.Run(t.Context(), s.user, "sbatch", args...)
}

// record returns a job as scontrol shows it.
func (s installed) record(t *testing.T, id string) string {
	t.Helper()
	record, err := s.Run(t.Context(), s.user, "scontrol", "show", "job", "-o", strings.TrimSpace(id))
	must.OK(t, err)
	return record
}

// testOptions compares the table of options with the help.
func (s installed) testOptions(t *testing.T) {
	help, err := s.sbatch(t, "--help")
	must.OK(t, err)
	learned := optionTable{getopt.NewTable(nil)}
	learned.learn(help)
	if len(learned.Long) < 70 {
		t.Fatalf("%d options in the help of sbatch", len(learned.Long))
	}
	table := newOptionTable()
	for name, has := range learned.Long {
		if own, known := table.Long[name]; !known {
			t.Errorf("--%s is not in the table", name)
		} else if !strings.HasPrefix(name, "container") && (own == getopt.Flag) != (has == getopt.Flag) && own != getopt.Optional { // the help forgets containers' values
			t.Errorf("--%s: %v in the table, %v in the help", name, own, has)
		}
	}
	for letter, name := range learned.Short {
		if table.Short[letter] != name {
			t.Errorf("-%c is --%s, in the table --%s", letter, name, table.Short[letter])
		}
	}
}

// testValues sees what the help does not say: a flag rejects a value, and an option that needs one
// takes the next word. --usage ends before anything is submitted.
func (s installed) testValues(t *testing.T) {
	table := newOptionTable()
	for name, has := range table.Long {
		switch name {
		case "expand-limit", "drive", "dry-run":
			continue
		}
		_, err := s.sbatch(t, "--"+name+"="+"1", "--usage")
		if err != nil && strings.Contains(err.Error(), "unrecognized option") {
			continue // of a later release
		}
		if refuses := err != nil && strings.Contains(err.Error(), "allow an argument"); refuses != (has == getopt.Flag) && has != getopt.Optional {
			t.Errorf("--%s=1: %v; in the table %v", name, err, has)
		}
		if name == "help" || name == "usage" || name == "version" {
			continue
		}
		_, err = s.sbatch(t, "--"+name) // and no script on standard input
		if needs := err != nil && strings.Contains(err.Error(), "requires an argument"); err == nil || needs != (has == getopt.Required) {
			t.Errorf("--%s: %v; in the table %v", name, err, has)
		}
	}
}

// testBegin compares what a begin time means.
func (s installed) testBegin(t *testing.T) {
	cases := append([]string{}, badBegins...)
	for text := range beginForms {
		cases = append(cases, text)
	}
	for _, text := range cases {
		before := time.Now()
		out, err := s.sbatch(t, "--parsable", "--hold", "--begin="+text, "--wrap=true")
		own, ownErr := parseBegin(text, before)
		if strings.Contains(text, "elevenses") {
			continue // since 26.05
		}
		if (err == nil) != (ownErr == nil) {
			t.Errorf("%q: sbatch says %v, we say %v", text, err, ownErr)
			continue
		}
		if err != nil {
			continue
		}
		record := s.record(t, out)
		_, rest, _ := strings.Cut(record, " StartTime=")
		start, _, _ := strings.Cut(rest, " ")
		if start == "Unknown" {
			start = "" // not in the future
		}
		if !sameStart(start, own, before) {
			t.Errorf("%q: Slurm begins at %q, we at %s", text, start, own)
		}
	}
}

// testDirectives compares how the words of #SBATCH lines are read.
func (s installed) testDirectives(t *testing.T) {
	for _, line := range []string{`-J a\ b`, `-J "a\ b"`, `-J \"a`, `-J a#b`, `-J a\#b`, `-J 'a b'"c"`, `-J a '' --no-such`, `-J a # --no-such`, `-J a\`, "-J\ta"} {
		script := "#!/bin/sh\n#SBATCH --comment=x --hold\n#SBATCH " + line + "\ntrue\n"
		cmd := s.Command(t.Context(), s.user, "sbatch", "--parsable")
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.Output()
		options, ownErr := newOptionTable().fromScript([]byte(script), "job.sh")
		if err != nil && strings.Contains(line, `\ `) { // up to 22.05: for its own sbatch to refuse
			continue
		}
		if (err == nil) != (ownErr == nil) {
			t.Errorf("%s: sbatch says %v, we say %v", line, err, ownErr)
			continue
		}
		if err != nil {
			continue
		}
		name, err := s.Run(t.Context(), s.user, "squeue", "-h", "-j", strings.TrimSpace(string(out)), "-o", "%j")
		must.OK(t, err)
		own, _ := layers{script: options}.last("job-name")
		if strings.TrimSuffix(name, "\n") != own.Value {
			t.Errorf("%s: the name is %q, we say %q", line, name, own.Value)
		}
	}
}

// testTime compares what a time limit means.
func (s installed) testTime(t *testing.T) {
	for _, text := range []string{"5", "90", "5:00", "5:01", "0:30", "1:00:00", "1:00:01", "1-0", "1-2:30", "2-00:00:30", "infinite", "100:00", "1-30"} {
		out, err := s.sbatch(t, "--parsable", "--hold", "--time="+text, "--wrap=true")
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		own, err := parseTimeLimit(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		record := s.record(t, out)
		want := "UNLIMITED"
		if own != unlimited {
			want = fmt.Sprintf("%02d:%02d:00", own/60%24, own%60)
			if own >= 1440 {
				want = fmt.Sprintf("%d-%s", own/1440, want)
			}
		}
		if !strings.Contains(record, " TimeLimit="+want+" ") {
			t.Errorf("%q: we say %s, Slurm: %s", text, want, record)
		}
	}
}

// sameStart compares a start time from scontrol with ours; a time that is not in the future is no
// start time.
func sameStart(shown string, own, now time.Time) bool {
	if shown == "" {
		return !own.After(now.Add(time.Second))
	}
	start, err := time.ParseInLocation("2006-01-02T15:04:05", shown, time.Local)
	if err != nil {
		return false
	}
	distance := start.Sub(own)
	return distance > -3*time.Second && distance < 3*time.Second
}
