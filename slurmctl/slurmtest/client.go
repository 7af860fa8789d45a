package slurmtest

import "github.com/evoslurm/evoslurm/slurmctl"

// Client returns a typed client of the cluster's Slurm.
func (c *Cluster) Client() *slurmctl.Client { return &slurmctl.Client{Env: c.Env()} }

// ClientUser converts the user to the Client's type.
func (u User) ClientUser() *slurmctl.User {
	return &slurmctl.User{UID: u.UID, GID: u.GID, Groups: u.Groups, Name: u.Name, Home: u.Home}
}
