package rig

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// Main does the work of TestMain for a package of trials: it builds Evoslurm's commands into a
// folder that all users can reach, where jobs run them, and exits with run's status. how holds
// further arguments of go build: flags first, then packages.
func Main(run func(bin string) int, how ...string) {
	code, err := built(func(bin string) (int, error) { return run(bin), nil }, how...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func built(run func(bin string) (int, error), how ...string) (code int, err error) {
	bin, err := os.MkdirTemp("", "evoslurm-bin-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	if err := os.Chmod(bin, 0o755); err != nil {
		return 0, err
	}
	args := slices.Concat([]string{"build", "-o", bin}, how, []string{"github.com/evoslurm/evoslurm/adapter/cmd/..."})
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}
	return run(bin)
}

// AtOnce has so many tests run at a time, unless -parallel says how many: trials wait more
// than they compute.
func AtOnce(n int) error {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if asked {
		return nil
	}
	return flag.Set("test.parallel", fmt.Sprint(n))
}
