package slurmctl

import (
	"context"
	"os"
	"strings"
)

// confFiles lists where slurm.conf is if SLURM_CONF is unset: the package's path, then the path of
// a configless node.
var confFiles = []string{"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}

// ClusterName returns the name of the cluster that this machine belongs to. Inside a job, it reads
// the environment; elsewhere it reads slurm.conf. It asks slurmctld only if slurm.conf includes
// another file.
func (c *Client) ClusterName(ctx context.Context, getenv func(string) string) (string, error) {
	if name := getenv("SLURM_CLUSTER_NAME"); name != "" {
		return name, nil
	}
	files := confFiles
	if file := getenv("SLURM_CONF"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			if name := clusterIn(string(text)); name != "" {
				return name, nil
			}
		}
	}
	cfg, err := c.Config(ctx)
	return cfg.ClusterName, err
}

// clusterIn finds ClusterName= in a slurm.conf, or returns "".
func clusterIn(conf string) string {
	for line := range strings.Lines(conf) {
		line, _, _ = strings.Cut(line, "#")
		for _, field := range strings.Fields(line) {
			if key, value, ok := strings.Cut(field, "="); ok && strings.EqualFold(key, "ClusterName") {
				return strings.Trim(value, `"`)
			}
		}
	}
	return ""
}
