// Package rig installs Evoslurm beside a private Slurm, for trials: the commands, built
// once, a folder that all users reach, the configuration, and their commands run there.
package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// Rig is a cluster with Evoslurm installed; the sidecar is yet to be started.
type Rig struct {
	Cluster *slurmtest.Cluster
	Bin     string // folder of the commands
	Dir     string // readable by all users, and writable below out/; remove it at the end
	Address string // of the API, on loopback
}

// New makes the rig's folder, and evoslurm.yaml in it: the configuration with more lines.
func New(cluster *slurmtest.Cluster, bin, more string) (*Rig, error) {
	r := &Rig{Cluster: cluster, Bin: bin}
	var err error
	if r.Dir, err = os.MkdirTemp("", "evoslurm-site-"); err != nil {
		return nil, err
	}
	if r.Address, err = FreeAddress(); err == nil {
		err = errors.Join(
			os.Chmod(r.Dir, 0o755),
			os.Mkdir(r.Dir+"/out", 0o777),
			os.Chmod(r.Dir+"/out", 0o1777),
			os.WriteFile(r.Dir+"/evoslurm.yaml", []byte(r.Configuration(more)), 0o644))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.Dir))
	}
	return r, nil
}

// FreeAddress returns a currently unused address on loopback, which it gives to no other caller while this process lives. Its
// port is below those of private clusters, and below those that Linux gives to clients: while a sidecar is away, a client, such
// as one of its own job, could otherwise get the port and keep it.
func FreeAddress() (string, error) {
	var err error
	for range 100 {
		port := 2_000 + rand.IntN(8_000)
		var mine, l net.Listener
		if mine, err = net.Listen("unix", fmt.Sprintf("@evoslurm-port-%d", port)); err != nil {
			continue
		}
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			addresses.Store(port, mine) // else it would be closed as garbage
			return l.Addr().String(), l.Close()
		}
		mine.Close()
	}
	return "", err
}

// addresses holds what keeps the ports of FreeAddress from other processes, by port.
var addresses sync.Map

// Configuration returns the sidecar's and the commands', who reach it over TCP with MUNGE, as
// from another machine.
func (r *Rig) Configuration(more string) string {
	return fmt.Sprintf(`
database: %[1]s/db/evoslurm.db
listen:
  socket: %[1]s/run/api.sock
  tcp: %[2]s
api: %[2]s
munge:
  socket: %[3]s
log:
  level: debug
%[4]s`, r.Dir, r.Address, r.Cluster.MungeSocket(), more)
}

// Env returns what a command needs in its environment beside the usual.
func (r *Rig) Env() []string {
	return append(r.Cluster.Env(), "EVOSLURM_CONFIG="+r.Dir+"/evoslurm.yaml", "PATH="+r.Bin+":"+os.Getenv("PATH"))
}

// As runs a command, Evoslurm's or the system's, in out/ as one of the cluster's users and
// gives both outputs.
func (r *Rig) As(user int, name string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if built := filepath.Join(r.Bin, name); exists(built) {
		name = built
	}
	cmd := r.Cluster.Command(ctx, r.Cluster.Users()[user], name, args...)
	cmd.Env = append(cmd.Env, r.Env()...)
	cmd.Dir = r.Dir + "/out"
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Jobs returns the evolving jobs, ended ones too, as evosqueue tells them to one of the
// cluster's users.
func (r *Rig) Jobs(user int) (jobs []api.Job, err error) {
	out, errs, err := r.As(user, "evosqueue", "--json=evoslurm", "-t", "all")
	if err != nil {
		return nil, fmt.Errorf("evosqueue: %w\n%s", err, errs)
	}
	err = json.Unmarshal([]byte(out), &jobs)
	return jobs, err
}
