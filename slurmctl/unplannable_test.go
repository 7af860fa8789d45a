package slurmctl

import "testing"

func TestUnplannable(t *testing.T) {
	nodes := []string{"n1"}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, ""},
		{[]string{"SPEC_NODES", "PURGE_COMP=00:05:00", "REPLACE_DOWN", "IGNORE_JOBS", "MAGNETIC"}, ""},
		{[]string{"SPEC_NODES", "MAINT"}, "reservation course has the flag MAINT: other reservations keep none of its jobs off their nodes"},
		{[]string{"REPLACE"}, "reservation course has the flag REPLACE: Slurm takes the nodes that its jobs use out of it"},
		{[]string{"TIME_FLOAT"}, "reservation course has the flag TIME_FLOAT, with which its jobs cannot be planned yet"},
	} {
		if got := (Reservation{Name: "course", Nodes: nodes, Flags: c.flags, Users: []string{"alice"}}).Unplannable("alice"); got != c.want {
			t.Errorf("%v: %q, want %q", c.flags, got, c.want)
		}
	}
	if got := (Reservation{Name: "lic", Users: []string{"alice"}}).Unplannable("alice"); got != "reservation lic has no nodes" {
		t.Errorf("without nodes: %q", got)
	}
	for _, shared := range []Reservation{{}, {Users: []string{"bob"}}, {Users: []string{"-bob"}}, {Users: []string{"alice", "bob"}}, {Users: []string{"alice"}, Accounts: []string{"a"}}} {
		if shared.Nodes = nodes; shared.Unplannable("alice") == "" {
			t.Errorf("%+v is for alice alone", shared)
		}
	}
}
