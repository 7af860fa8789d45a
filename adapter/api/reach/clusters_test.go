package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// TestClusters: -M names the own cluster and those in the folder, each once and in its order.
func TestClusters(t *testing.T) {
	t.Setenv("SLURM_CLUSTER_NAME", "Own")
	site := config.Default()
	site.Clusters.Dir = t.TempDir()
	for name, text := range map[string]string{"b": "api: headb:7", "c": "sidecar_user: daemon", "own": "api: wrong:1"} {
		if err := os.WriteFile(filepath.Join(site.Clusters.Dir, name+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for words, want := range map[string]string{"all": "own b c", "c,own": "c own", "B,all,b": "b own c", "own": "own", "": "error: no cluster is named",
		"a": `error: no cluster "a" is known here: there are own, b, c`, "-x": "error: no cluster", "../b": "error: no cluster"} {
		got, err := Clusters(t.Context(), site, strings.Split(words, ","))
		var names []string
		for _, one := range got {
			names = append(names, one.Name)
			if one.Own != (one.Name == "own") || one.Own != (one.Slurm.Remote == "") || !one.Own && one.Slurm.Remote != one.Name || one.Site.API == "wrong:1" {
				t.Errorf("%q: %s is own %v, remote %q, at %s", words, one.Name, one.Own, one.Slurm.Remote, one.Site.API)
			}
			if name, err := one.API.ClusterName(t.Context()); err != nil || name != one.Name {
				t.Errorf("%q: credentials are for cluster %q, %v", words, name, err)
			}
		}
		if text, fails := strings.CutPrefix(want, "error: "); fails && (err == nil || !strings.Contains(err.Error(), text)) || !fails && (err != nil || strings.Join(names, " ") != want) {
			t.Errorf("%q: %q, %v, want %s", words, names, err, want)
		}
	}
}
