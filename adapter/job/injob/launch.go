package injob

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Launch returns the srun, with its environment, that starts an MPI launcher's proxy on a host of
// the job, as ssh would. args are [options] HOST COMMAND…, as Hydra (-launcher ssh -launcher-exec)
// and Open MPI (plm_rsh_agent) call it. They expect COMMAND to be read by a shell on the host, and
// so it is, with the user's rights.
//
// The environment has no trace of Slurm or of the launcher that calls: each
// would be believed by the processes started.
func Launch(a api.Allocation, args, environ []string) (argv, env []string, err error) {
	if err := check(a); err != nil {
		return nil, nil, err
	}
	host, command, err := sshWords(args)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range a.Parts {
		if !slices.Contains(p.NodeList, host) {
			continue
		}
		for _, entry := range environ {
			name, _, _ := strings.Cut(entry, "=")
			if !slurmsOwn(name) && !strings.HasPrefix(name, "PMI") && !strings.HasPrefix(name, "HYD") {
				env = append(env, entry)
			}
		}
		argv = []string{"srun", "--jobid=" + strconv.FormatUint(uint64(p.Job), 10), "--nodelist=" + host, "--nodes=1", "--ntasks=1",
			"--overlap", "--mpi=none", "--export=ALL", "--input=all"}
		if a.CPUFreq != "" {
			argv = append(argv, "--cpu-freq="+a.CPUFreq)
		}
		return append(argv, "/bin/sh", "-c", command), env, nil
	}
	return nil, nil, fmt.Errorf("the job does not have %s, or gave it back", host)
}

// sshWords splits the arguments of ssh, [options] HOST [--] COMMAND…, and drops a user before the host.
func sshWords(args []string) (host, command string, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		takesValue := slices.Contains([]string{"-l", "-p", "-i", "-o", "-F"}, args[0]) // ssh's, that launchers use
		args = args[1:]
		if takesValue && len(args) > 0 {
			args = args[1:]
		}
	}
	if len(args) < 2 {
		return "", "", errors.New("want [options] HOST COMMAND")
	}
	if len(args) > 2 && args[1] == "--" { // as GNU parallel writes it
		args = slices.Delete(slices.Clone(args), 1, 2)
	}
	host, command = args[0], strings.Join(args[1:], " ")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	return host, command, nil
}
