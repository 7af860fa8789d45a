// Package config is Evoslurm's configuration: one typed Config, read from a
// YAML file, EVOSLURM_* variables and flags, later ones winning, over the
// defaults. The file is --config's, else $EVOSLURM_CONFIG's, else
// /etc/evoslurm/evoslurm.yaml if it exists. The sidecar and the commands read
// the same file; configs/evoslurm.yaml is a commented sample of every key.
//
// The variable of a key is its name in capitals, dots as underscores:
// log.level is EVOSLURM_LOG_LEVEL. Lists are comma-separated there. A flag
// that bears a key's name with dashes (--log-level) sets it, and so does a flag
// that KeyOf annotates.
package config
