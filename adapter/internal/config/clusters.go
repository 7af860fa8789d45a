package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// Clusters says how commands find the site's other clusters, each with a sidecar of its own (-M).
type Clusters struct {
	Dir  string        `mapstructure:"dir"`  // folder of a file NAME.yaml for each other cluster, as this file is for this one; "": there are none
	Wait time.Duration `mapstructure:"wait"` // for the answer of a cluster; without it, the cluster is left out

	// Where jobs' input files are, and how they get to another cluster (evosbatch --stage-in).
	Replicas   string   `mapstructure:"replicas"`   // table of files, their sizes, and the clusters that have them; "": there is none
	Mounts     []string `mapstructure:"mounts"`     // folders that this cluster's nodes see as the host with the command does
	Bandwidths []string `mapstructure:"bandwidths"` // FROM TO BYTES, a second; the first that fits counts
	StageIn    string   `mapstructure:"stage_in"`   // command that fetches files to this cluster, in the job; "": none does
}

// Bandwidth says how many bytes a second a file takes from one cluster to another.
type Bandwidth struct {
	From, To string // AnyCluster: any
	Rate     float64
}

// AnyCluster stands for all clusters in a bandwidth.
const AnyCluster = "*"

// Rates returns the bandwidths, or what is wrong with the first bad one.
func (c Clusters) Rates() ([]Bandwidth, error) {
	var all []Bandwidth
	for _, text := range c.Bandwidths {
		words := strings.Fields(text)
		if len(words) != 3 {
			return nil, fmt.Errorf("%q; want FROM TO BYTES (a second), such as alpha beta 1.25e8", text)
		}
		for _, name := range words[:2] {
			if name != AnyCluster && !IsCluster(name) {
				return nil, fmt.Errorf("%q: %q is no cluster's name", text, name)
			}
		}
		rate, err := strconv.ParseFloat(words[2], 64)
		if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("%q: %q is no number of bytes a second; want a positive and finite one", text, words[2])
		}
		all = append(all, Bandwidth{words[0], words[1], rate})
	}
	return all, nil
}

// RateIn returns the bytes a second from one cluster to another, or 0 if there is no bandwidth.
func RateIn(all []Bandwidth, from, to string) float64 {
	for _, b := range all {
		if (b.From == AnyCluster || b.From == from) && (b.To == AnyCluster || b.To == to) {
			return b.Rate
		}
	}
	return 0
}

func (w Web) validate(check func(ok bool, key, format string, args ...any)) {
	for _, text := range w.Clusters {
		_, _, ok := ClusterPage(text)
		check(ok, "web.clusters", "%q; want NAME=URL, such as beta=https://head-beta/", text)
	}
}

// ClusterPage reads an entry of web.clusters: a cluster's name, and the address of its page.
func ClusterPage(text string) (name, address string, ok bool) {
	name, address, _ = strings.Cut(text, "=")
	u, err := url.Parse(address)
	return name, address, IsCluster(name) && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// IsCluster reports whether slurmdbd takes a name for a cluster.
func IsCluster(name string) bool { return clusterName.MatchString(name) }

// MostWait is the longest time for which a cluster that does not answer may keep a command.
const MostWait = 10 * time.Minute

func (c Clusters) validate(check func(ok bool, key, format string, args ...any)) {
	check(c.Dir == "" || filepath.IsAbs(c.Dir), "clusters.dir", "%q is not an absolute path", c.Dir)
	check(c.Wait >= 100*time.Millisecond && c.Wait <= MostWait, "clusters.wait", "%v; want 100ms to %v", c.Wait, MostWait)
	check(c.Replicas == "" || filepath.IsAbs(c.Replicas), "clusters.replicas", "%q is not an absolute path", c.Replicas)
	check(c.StageIn == "" || filepath.IsAbs(c.StageIn), "clusters.stage_in", "%q is not an absolute path", c.StageIn)
	for _, folder := range c.Mounts {
		check(filepath.IsAbs(folder), "clusters.mounts", "%q is not an absolute path", folder)
	}
	_, err := c.Rates()
	check(err == nil, "clusters.bandwidths", "%v", err)
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
