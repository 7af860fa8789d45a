package slurmctl

import (
	"context"
	"slices"
	"strings"
)

// Privileges says which users see what PrivateData hides from others: operators and administrators
// (AdminLevel) see all jobs, coordinators those of their accounts.
type Privileges struct {
	all      map[string]bool     // by user
	accounts map[string][]string // accounts that a user coordinates
}

// Privileges queries slurmdbd for the privileges, by one sacctmgr.
func (c *Client) Privileges(ctx context.Context) (Privileges, error) {
	out, err := c.output(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "user", "withcoord", "format=User,AdminLevel,Coord")
	if err != nil {
		return Privileges{}, err
	}
	return parsePrivileges(out), nil
}

// parsePrivileges reads lines like "ann|Operator|proj,physics". A coordinator of an account also
// coordinates the accounts below it, and slurmdbd lists them all.
func parsePrivileges(out string) Privileges {
	p := Privileges{all: map[string]bool{}, accounts: map[string][]string{}}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 3 || f[0] == "" {
			continue
		}
		if f[1] == "Operator" || f[1] == "Administrator" {
			p.all[f[0]] = true
		}
		p.accounts[f[0]] = append(p.accounts[f[0]], list(f[2])...)
	}
	return p
}

// Coordinates lists the accounts that a user coordinates.
func (p Privileges) Coordinates(user string) []string { return p.accounts[user] }

// See reports whether a user sees the jobs of an account, or with "" all jobs.
func (p Privileges) See(user, account string) bool {
	return p.all[user] || account != "" && slices.Contains(p.accounts[user], account)
}

// MakeOperator says how an administrator makes an account one of Slurm's operators. sacctmgr (22.05) modifies nothing
// for an account that slurmdbd does not know, and leaves the level of one that it knows when it adds an association.
func MakeOperator(name string) string {
	return "sacctmgr add user " + name + " account=root adminlevel=operator (if slurmdbd has it: sacctmgr modify user " + name + " set adminlevel=operator)"
}
