package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// Clusters says how commands find the site's other clusters, each with a sidecar of its own (-M).
type Clusters struct {
	Dir  string        `mapstructure:"dir"`  // folder of a file NAME.yaml for each other cluster, as this file is for this one; "": there are none
	Wait time.Duration `mapstructure:"wait"` // for the answer of a cluster; without it, the cluster is left out
}

// MostWait is the longest time for which a cluster that does not answer may keep a command.
const MostWait = 10 * time.Minute

func (c Clusters) validate(check func(ok bool, key, format string, args ...any)) {
	check(c.Dir == "" || filepath.IsAbs(c.Dir), "clusters.dir", "%q is not an absolute path", c.Dir)
	check(c.Wait >= 100*time.Millisecond && c.Wait <= MostWait, "clusters.wait", "%v; want 100ms to %v", c.Wait, MostWait)
}

// clusterName matches the names that slurmdbd takes for clusters.
var clusterName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]{0,39}$`)

const clusterFile = ".yaml"

// Names lists the other clusters, sorted. A folder that does not exist has none.
func (c Clusters) Names() ([]string, error) {
	if c.Dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("clusters.dir: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, is := strings.CutSuffix(e.Name(), clusterFile); is && clusterName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Other reads the configuration of another cluster. Variables and flags are for the own one, and do not count.
func (c Clusters) Other(name string) (Config, error) {
	names, err := c.Names()
	if err != nil {
		return Config{}, err
	}
	if !slices.Contains(names, name) {
		return Config{}, fmt.Errorf("no file %s tells of a cluster %q", filepath.Join(c.Dir, "NAME"+clusterFile), name)
	}
	v, known := viper.New(), Default().values()
	for key, value := range known {
		v.SetDefault(key, value)
	}
	file := filepath.Join(c.Dir, name+clusterFile)
	if err := mergeFile(v, file, known); err != nil {
		return Config{}, err
	}
	other, err := decode(v)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return other, nil
}
