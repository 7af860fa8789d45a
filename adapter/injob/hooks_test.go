package injob

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/request"
)

func TestHooks(t *testing.T) {
	var out bytes.Buffer
	h := Hooks{Output: &out, Environ: []string{"PATH=/usr/bin:/bin", "EVO_STEP=1", "MINE=x"}, Hooks: request.Hooks{
		Grow:   `echo "$EVO_EVENT in $EVO_STEP: $EVO_ARRIVED of $EVO_NODELIST, $MINE"`,
		Shrink: `echo "$EVO_EVENT: $EVO_LEAVING, then $EVO_NEXT_NODES"`,
		Step:   `echo "$EVO_EVENT $EVO_STEP: $EVO_ARRIVED/$EVO_LEFT"`,
	}}
	check := func(err error, want string) {
		t.Helper()
		if err != nil || out.String() != want {
			t.Errorf("%v; printed %q, want %q", err, out.String(), want)
		}
		out.Reset()
	}
	two := allocation(2, &api.Coming{Nodes: 1}, "n1", "n2", "n3")
	check(h.Begun(t.Context(), two, []string{"n1"}), "grow in 2: n[2-3] of n[1-3], x\nstep 2: n[2-3]/\n")
	check(h.Leaving(t.Context(), two, []string{"n2", "n3"}), "shrink: n[2-3], then 1\n")
	check(h.Leaving(t.Context(), two, nil), "")
	check(h.Begun(t.Context(), allocation(3, nil, "n1"), []string{"n1", "n2", "n3"}), "step 3: /n[2-3]\n")
	check(h.Begun(t.Context(), api.Allocation{Job: 12, Done: true}, []string{"n1"}), "")
	check(Hooks{}.Begun(t.Context(), two, nil), "")

	h.Hooks, h.Time = request.Hooks{Grow: "exec sleep 1000", Step: "/no/such/command"}, 100*time.Millisecond
	err := h.Begun(t.Context(), two, nil)
	if err == nil || !strings.Contains(err.Error(), "--on-grow: ended after 100ms") || !strings.Contains(err.Error(), "--on-step: exit status 127") {
		t.Errorf("what hangs and what is missing: %v", err)
	}
}
