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
			checkCluster(t, one)
		}
		if text, fails := strings.CutPrefix(want, "error: "); fails && (err == nil || !strings.Contains(err.Error(), text)) || !fails && (err != nil || strings.Join(names, " ") != want) {
			t.Errorf("%q: %q, %v, want %s", words, names, err, want)
		}
	}
}

// checkCluster sees that a cluster is reached as itself.
func checkCluster(t *testing.T, c Cluster) {
	t.Helper()
	remote := c.Name
	if c.Name == "own" {
		remote = ""
	}
	if c.Own != (remote == "") || c.Slurm.Remote != remote || c.Site.API == "wrong:1" {
		t.Errorf("%s is own %v, remote %q, at %s", c.Name, c.Own, c.Slurm.Remote, c.Site.API)
	}
	if name, err := c.API.ClusterName(t.Context()); err != nil || name != c.Name {
		t.Errorf("%s: credentials are for cluster %q, %v", c.Name, name, err)
	}
}
