package simulate

import (
	"fmt"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// Users of the model.
var (
	Alice = slurmsim.User{Name: "alice", UID: 1001, Account: "physics"}
	Bob   = slurmsim.User{Name: "bob", UID: 1002, Account: "chemistry"}

	Mallory = slurmsim.User{Name: "mallory", UID: 1003, Account: "chemistry"} // attacks
)

func userOf(uid uint32) (*slurmctl.User, error) {
	for _, u := range []slurmsim.User{Alice, Bob, Mallory, {Name: "root"}, operator} {
		if u.UID == uid {
			return &slurmctl.User{Name: u.Name, UID: uid, GID: uid}, nil
		}
	}
	if uid >= firstUser && uid < firstUser+mostUsers {
		return &slurmctl.User{Name: experimenter(int(uid - firstUser)).Name, UID: uid, GID: uid}, nil
	}
	return nil, fmt.Errorf("user %d: unknown", uid)
}

// Users of experiments.
const (
	firstUser = 20000
	mostUsers = 10000
	accounts  = 10 // among which users are spread
)

// experimenter returns a user of an experiment.
func experimenter(n int) slurmsim.User {
	n %= mostUsers
	return slurmsim.User{Name: fmt.Sprintf("u%d", n+1), UID: uint32(firstUser + n), Account: fmt.Sprintf("a%d", n%accounts+1)}
}

func userNamed(name string) slurmsim.User {
	switch name {
	case "bob":
		return Bob
	case "mallory":
		return Mallory
	}
	return Alice
}

// operator is the sidecar's account where it is not root.
var operator = slurmsim.User{Name: "evoslurm", UID: 900, Operator: true}

// admin is an administrator, whom the checks do not take for the sidecar.
var admin = slurmsim.User{Name: "admin"}
