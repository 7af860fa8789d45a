package submit

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

func TestParseTimeLimit(t *testing.T) {
	for text, want := range map[string]int64{
		"5": 5, "90": 90, "5:00": 5, "5:01": 6, "0:30": 1, "1:00:00": 60, "1:00:01": 61, "1-0": 1440, "1-2:30": 1590, "2-00:00:30": 2881,
		"0": unlimited, "00:00": unlimited, "infinite": unlimited, "UNLIMITED": unlimited, "-1": unlimited,
	} {
		if got, err := parseTimeLimit(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1:2:3:4", "1-", "--", "5 "} {
		if got, err := parseTimeLimit(text); err == nil && got != unlimited {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	for text, want := range map[string][3]int64{ // limits 1, 1.5, inf
		"2@10m":              {11, 16, 21},
		"2@10m,5@30m":        {41, 61, 81},
		"1@1s":               {2, 2, 2},
		"1@59s,2@2s":         {3, 3, 4},
		"1@20000-0,1@2000-0": {22000*1440 + 1, 33000*1440 + 1, 44000*1440 + 1},
	} {
		profile, err := planner.ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, limit := range []planner.ExpandLimit{1, 1.5, planner.Infinite} {
			if got := timeLimit(profile, limit); got != want[i] {
				t.Errorf("%s with limit %s: %d minutes, want %d", text, limit, got, want[i])
			}
		}
		if timeLimit(profile, 0) != timeLimit(profile, planner.Infinite) {
			t.Errorf("%s: a limit that only the site knows is not as one without bound", text)
		}
	}
	long := planner.Profile{{Duration: planner.MaxDuration, Nodes: 1}, {Duration: planner.MaxDuration, Nodes: 1}}
	if got := timeLimit(long, 1e9); got > 1<<31-1 || got < 2*planner.MaxDuration/60 {
		t.Errorf("the longest profile: %d minutes", got)
	}
}

func TestFormatMinutes(t *testing.T) {
	for m, want := range map[int64]string{1: "1", 1439: "1439", 1440: "1-00:00", 1590: "1-02:30", 22000*1440 + 61: "22000-01:01"} {
		got := formatMinutes(m)
		if back, err := parseTimeLimit(got); got != want || err != nil || back != m {
			t.Errorf("%d minutes are %q, want %q; read back as %d, %v", m, got, want, back, err)
		}
	}
}

func TestCheckTime(t *testing.T) {
	for _, c := range []struct {
		words  string
		want   int64
		reason string
	}{
		{"", 0, ""},
		{"--drive=chain --time=31", 31, ""}, // of the job of each step
		{"--drive=chain --time=30", 0, "shorter than the chain's longest step, which takes 30m1s; give at least --time=31"},
		{"--time=41", 41, ""},
		{"-t 40:01", 41, ""},
		{"--time=inf", 0, "not understood"},
		{"--time=infinite", unlimited, ""},
		{"--time=40", 0, "shorter than the profile, which takes 40m1s; give at least --time=41"},
		{"--time=10 --time=50", 50, ""},
	} {
		r, err := build("--profile=2@10m,5@30m1s "+c.words+" job.sh", "")
		if got := r.userTime; (err == nil) != (c.reason == "") || err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%q: %d, %v, want %d, %q", c.words, got, err, c.want, c.reason)
		}
	}
}
