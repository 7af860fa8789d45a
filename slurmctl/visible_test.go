package slurmctl

import "testing"

// TestVisible checks which partitions sinfo shows to which user.
func TestVisible(t *testing.T) {
	v := parseVisible(`PartitionName=open AllowGroups=ALL AllowAccounts=ALL Hidden=NO Nodes=n1
PartitionName=chem AllowGroups=chem,phys AllowAccounts=ALL Hidden=NO Nodes=n2
PartitionName=nobody AllowGroups=(null) Hidden=NO Nodes=n2
PartitionName=secret AllowGroups=chem Hidden=YES Nodes=n3

No partitions in the system
`)
	for _, c := range []struct {
		groups    []string
		partition string
		want      bool
	}{
		{nil, "open", true}, {[]string{"chem"}, "open", true},
		{nil, "chem", false}, {[]string{"users"}, "chem", false}, {[]string{"users", "phys"}, "chem", true},
		{[]string{"chem"}, "secret", false}, {[]string{"chem"}, "nobody", false}, {[]string{"chem"}, "unknown", false},
	} {
		if got := v.To(c.groups, c.partition); got != c.want {
			t.Errorf("partition %s is shown to groups %q: %v", c.partition, c.groups, got)
		}
	}
}

func TestBoundToHosts(t *testing.T) {
	got := boundToHosts("PartitionName=open AllowGroups=ALL AllocNodes=ALL Nodes=n1\nPartitionName=shut AllowGroups=ALL AllocNodes=login[1-2] Nodes=n1\n")
	if len(got) != 1 || got[0] != "shut" {
		t.Errorf("bound: %q", got)
	}
}
