package slurmctl

import "testing"

func TestYields(t *testing.T) {
	parts := parsePartitionRules("PartitionName=low PriorityTier=1 PreemptMode=REQUEUE\nPartitionName=kept PriorityTier=1 PreemptMode=OFF\n" +
		"PartitionName=high PriorityTier=10 PreemptMode=REQUEUE\nPartitionName=slow PriorityTier=1 PreemptMode=GANG,SUSPEND\n")
	const qos = "inter||cluster\nbatch|inter,kept,slow|cluster\nkept||off\nslow||suspend\n"
	config := func(kind, mode, exempt string) Config {
		return Config{Values: map[string]string{"PreemptType": kind, "PreemptMode": mode, "PreemptExemptTime": exempt}}
	}
	byQOS, byTier := config("preempt/qos", "REQUEUE", "00:00:00"), config("preempt/partition_prio", "REQUEUE", "")
	for _, c := range []struct {
		cfg                      Config
		part, qos, toPart, toQOS string
		want                     bool
	}{
		{byQOS, "p", "inter", "p", "batch", true},
		{byQOS, "p", "batch", "p", "inter", false},
		{byQOS, "p", "kept", "p", "batch", false},
		{byQOS, "p", "slow", "p", "batch", false},
		{byQOS, "p", "unknown", "p", "batch", false},
		{byQOS, "low", "batch", "high", "batch", false},
		{byTier, "low", "", "high", "", true},
		{byTier, "low", "inter", "low", "batch", false},
		{byTier, "high", "", "low", "", false},
		{byTier, "kept", "", "high", "", false},
		{byTier, "slow", "", "high", "", false},
		{byTier, "low", "", "high,low", "", false},
		{byTier, "nowhere", "", "high", "", false},
		{config("preempt/none", "OFF", ""), "low", "inter", "high", "batch", false},
		{config("preempt/qos", "REQUEUE", "00:10:00"), "p", "inter", "p", "batch", false},
		{config("preempt/qos", "GANG,SUSPEND", ""), "p", "inter", "p", "batch", false},
		{config("preempt/qos", "GANG,CANCEL", ""), "p", "inter", "p", "batch", true},
	} {
		if got := readPreemption(c.cfg, parts, qos).Yields(c.part, c.qos, c.toPart, c.toQOS); got != c.want {
			t.Errorf("%v: a job of %s/%s yields to one of %s/%s: %v, want %v", c.cfg.Values, c.part, c.qos, c.toPart, c.toQOS, got, c.want)
		}
	}
	for _, c := range []struct {
		cfg                      Config
		part, qos, toPart, toQOS string
		want                     bool
	}{
		{byTier, "slow", "", "high", "", true}, {byTier, "low", "", "high", "", false}, {byTier, "slow", "", "low", "", false},
		{byQOS, "p", "slow", "p", "batch", true}, {byQOS, "p", "inter", "p", "batch", false},
		{config("preempt/qos", "GANG,SUSPEND", ""), "p", "inter", "p", "batch", true},
		{config("preempt/none", "OFF", ""), "slow", "", "high", "", false},
	} {
		if got := readPreemption(c.cfg, parts, qos).Suspends(c.part, c.qos, c.toPart, c.toQOS); got != c.want {
			t.Errorf("%v: a job of %s/%s is suspended for one of %s/%s: %v, want %v", c.cfg.Values, c.part, c.qos, c.toPart, c.toQOS, got, c.want)
		}
	}
	var l *Limits
	if l.Preemption().Yields("low", "", "high", "") {
		t.Error("somebody yields though nothing is known")
	}
}
