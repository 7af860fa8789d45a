package slurmctl

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAgeing(t *testing.T) {
	const day = 24 * time.Hour
	multifactor := func(more ...string) Config {
		c := Config{Values: map[string]string{"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000", "PriorityMaxAge": "7-00:00:00",
			"PriorityCalcPeriod": "00:01:00"}}
		for i := 0; i < len(more); i += 2 {
			c.Values[more[i]] = more[i+1]
		}
		return c
	}
	week := Ageing{Weight: 1000, MaxAge: 7 * day, Period: time.Minute}
	for name, c := range map[string]struct {
		config Config
		want   Ageing
	}{
		"as a site has it": {multifactor(), week},
		"basic":            {multifactor("PriorityType", "priority/basic"), Ageing{}},
		"no weight":        {multifactor("PriorityWeightAge", "0"), Ageing{}},
		"not known":        {multifactor("PriorityMaxAge", "a week"), Ageing{}},
		"no period":        {multifactor("PriorityCalcPeriod", ""), Ageing{Weight: 1000, MaxAge: 7 * day, Period: 5 * time.Minute}},
		"always":           {multifactor("PriorityFlags", "ACCRUE_ALWAYS,FAIR_TREE"), Ageing{Weight: 1000, MaxAge: 7 * day, Period: time.Minute, Always: true}},
		"limits":           {multifactor("AccountingStorageEnforce", "associations,limits,qos"), Ageing{Weight: 1000, MaxAge: 7 * day, Period: time.Minute, Limits: true}},
	} {
		if got := c.config.Ageing(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for _, c := range []struct {
		name     string
		ageing   Ageing
		shown    uint64
		nice     int
		has, due time.Duration
		want     uint64
	}{
		{"half of the time", week, 500, 0, 0, 84 * time.Hour, 1000},
		{"longer than it counts", week, 500, 0, 0, 30 * day, 1500},
		{"nothing but age", week, 1, 0, 0, 84 * time.Hour, 500},
		{"what Slurm has counted counts once", week, 600, 0, 14 * 3600 * time.Second, 84 * time.Hour, 1016},
		{"held", week, 0, 0, 0, day, 0},
		{"not eligible yet", week, 7, 0, 0, -day, 7},
		{"nice", week, 400, 100, 0, 84 * time.Hour, 900},
		{"too nice to be seen", week, 1, 600, 0, 84 * time.Hour, 1},
		{"less nice than old", week, 1, 200, 0, 84 * time.Hour, 300},
		{"no age", Ageing{}, 5, 0, 0, day, 5},
		{"at once", Ageing{Weight: 10, MaxAge: 0}, 5, 0, 0, time.Second, 15},
		{"never", Ageing{Weight: 10, MaxAge: Unlimited}, 5, 0, 0, day, 5},
		{"no more than 32 bits", Ageing{Weight: 1 << 32, MaxAge: day}, 1 << 31, 0, 0, day, 1<<32 - 1},
	} {
		if got := c.ageing.Priority(c.shown, c.nice, c.has, c.due); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestAgeingLikeSlurm checks that a parked job gets the priority that Slurm would compute, or 1
// less, and that an older job never gets less than a younger one.
func TestAgeingLikeSlurm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ageing{Weight: float64(rapid.Uint32Range(1, 1e6).Draw(t, "weight")), MaxAge: time.Duration(rapid.Int64Range(1, 1e6).Draw(t, "max")) * time.Second}
		age := time.Duration(rapid.Int64Range(0, 2e6).Draw(t, "age")) * time.Second
		others := rapid.Float64Range(0, 1e6).Draw(t, "other factors")
		nice := rapid.IntRange(0, 2000).Draw(t, "nice")
		slurm := func(age time.Duration) uint64 { return uint64(max(others-float64(nice)+a.points(age), 1)) }
		shown := slurm(0)
		got, want := a.Priority(shown, nice, 0, age), slurm(age)
		if got > want || shown > 1 && got+1 < want {
			t.Fatalf("%d, Slurm reckons %d", got, want)
		}
		if older := a.Priority(shown, nice, 0, age+time.Hour); older < got {
			t.Fatalf("%d, an hour later %d", got, older)
		}
	})
}
