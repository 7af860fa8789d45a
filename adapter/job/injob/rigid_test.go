package injob

import (
	"reflect"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// TestRigid checks that a job without the sidecar goes through its steps with the same nodes, and that only the job
// itself does, not one that was submitted in it.
func TestRigid(t *testing.T) {
	env := map[string]string{"EVO_RIGID": "2", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_CPUS_PER_NODE": "4(x2),8"}
	get := func(name string) string { return env[name] }
	a, ok := Rigid(7, get)
	want := api.Allocation{Ready: true, Job: 7, Step: 1, Steps: 2, Drive: "merge", Nodes: 3, Parts: []api.Part{{Job: 7, NodeList: []string{"n1", "n2", "n3"}, CPUs: []int{4, 4, 8}}}, Coming: &api.Coming{Step: 2, Nodes: 3}}
	if !ok || !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	if a = NextRigid(a); a.Step != 2 || a.Done || a.Coming != nil {
		t.Errorf("%+v", a)
	}
	if _, err := ExportsOf(a, get); err != nil {
		t.Error(err)
	}
	if a = NextRigid(a); a.Step != 2 || !a.Done {
		t.Errorf("%+v", a)
	}
	for _, other := range []map[string]string{{"EVO_RIGID": "0"}, {"EVO_RIGID": "99999999"}, {"SLURM_JOB_ID": "8"}, {"SLURM_JOB_NODELIST": "n["}} {
		if _, ok := Rigid(7, func(name string) string {
			if v, there := other[name]; there {
				return v
			}
			return env[name]
		}); ok {
			t.Errorf("%v: it is no rigid job", other)
		}
	}
	for text, want := range map[string][]int{"": {1, 1}, "3(x9999999999)": {3, 3}, "x,5": {5, 1}, "2(x": {1, 1}} {
		if got := cpusPerNode(text, 2); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
