package simulate

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// attacks lists what a user writes into a comment, or requests, to cost the sidecar memory and
// time. Meanwhile, another user's job must get its steps on time.
var attacks = []struct {
	name  string
	lines []string
	says  []string // of the story
}{
	{"profile of a running job", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=2147483647@1;;", "20s start"},
		[]string{"the profile goes up to 2147483647 nodes, and the cluster has 8: ask for fewer"}},
	{"ten million nodes", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=1@1,10000000@1;;", "20s start"},
		[]string{"the profile goes up to 10000000 nodes"}},
	{"claim", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=1@1m;g=2147483647;;", "20s start"},
		[]string{"its claim (--max-nodes) is 2147483647 nodes, and the cluster has 8"}},
	{"steps that are over", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=1@1m;s=3@9@4@2147483647@1790000012;;", "20s start"},
		[]string{"the steps that are over went up to 2147483647 nodes, and the cluster has 8"}},
	{"alternatives", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=1000000000@1|2147483647@2;;", "20s start"},
		[]string{"1000000000@1m: the profile goes up to 1000000000 nodes"}},
	{"bounds", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=1-2147483647@10m;;", "20s start"}, nil},
	{"many steps over", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=1@1m;s=10000@9999@1@1@1790000012;;", "20s start"},
		[]string{"out of bounds"}},
	{"longer than time", []string{"5s stock evil 1 10m 10m user=bob comment=evo:v2;p=" + strings.Repeat("1@2000000000s,", 40) + "1@1m;;", "20s start"},
		[]string{"a job may last"}},
	{"growth on demand", []string{"20s start", "25s submit evil 1@10m user=bob limit=20m", "30s change evil +60000000!1", "40s change evil +60000000", "50s change evil =60000000@1m"},
		[]string{"accepted, step 2 on 4 nodes", "it would have 60000004 nodes, and may have 8 at most", "it would have 60000000 nodes, and may have 8 at most"}},
	{"bounds on demand", []string{"20s start", "25s submit evil 1@10m user=bob limit=20m most=4", "30s change evil =1-2147483647@1m"}, nil},
}

// TestCommentsAreReadOnce has the comments of jobs, whatever is in them, read once, beside the
// loop, and their lists of nodes never be listed beyond the cluster's.
func TestCommentsAreReadOnce(t *testing.T) {
	attack := strings.TrimSuffix(strings.Repeat("evo:v2;p=1@1;n=n[1-131072];", 37), ";") // none has an end
	for _, comment := range []string{attack, "evo:v2;p=1@1m;n=n[1-131072];;", "evo:v2;p=1@1m;n=n[1-9];;"} {
		script := "cluster nodes=8\n0s submit amr 2@2m,4@2m,1@1m\n"
		for i := range 5 {
			script += fmt.Sprintf("1s stock held%d 1 10m 10m user=bob held comment=%s\n", i, comment)
		}
		bytes := allocated(func() {
			if err := Play(script+"15m end\n", io.Discard); err != nil {
				t.Error(err)
			}
		})
		if bytes > mostAllocated {
			t.Errorf("%.40s: %d MiB were allocated, at most %d are expected", comment, bytes>>20, mostAllocated>>20)
		}
		t.Logf("%d MiB", bytes>>20)
	}
}

// mostAllocated bounds what a model of half an hour allocates, attacked or not.
const mostAllocated = 64 << 20

// TestNumbersOfUsers has numbers in comments and requests cost nothing: what does not fit the
// cluster is refused with a reason, and other users' jobs go on.
func TestNumbersOfUsers(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			// the job runs already when the sidecar sees it first
			script := "cluster nodes=8 accounting merge\nrest\n0s submit amr 2@2m,4@2m,1@1m\n4s kill\n" + strings.Join(a.lines, "\n") + "\n15m end\n"
			var story strings.Builder
			bytes := allocated(func() {
				if err := Play(script, &story); err != nil {
					t.Error(err)
				}
			})
			for _, want := range append(a.says, "amr: step 1 on 2 nodes at 0:03.060, step 2 on 4 nodes at 2:03", "step 3 on 1 nodes at 4:0") {
				if !strings.Contains(story.String(), want) {
					t.Errorf("no %q in\n%s", want, story.String())
				}
			}
			if bytes > mostAllocated {
				t.Errorf("%d MiB were allocated, at most %d are expected", bytes>>20, mostAllocated>>20)
			}
			t.Logf("%d MiB", bytes>>20)
		})
	}
}

// allocated returns how many bytes something allocates, freed ones included.
func allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
