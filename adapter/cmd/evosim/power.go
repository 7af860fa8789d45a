package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/internal/energy"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// powerFlags are the flags of evosim run about energy.
type powerFlags struct {
	watts                   string
	suspend, boot, shutdown int64

	drawn energy.Watts
}

func (f *powerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.watts, "watts", "", "watts of a node, to show energy: busy=W,idle=W[,boot=W][,shutdown=W][,off=W]")
	flags.Int64Var(&f.suspend, "suspend", 0, "Slurm's SuspendTime in seconds (default: nodes stay on)")
	flags.Int64Var(&f.boot, "boot", 154, "seconds of a boot, with --suspend")
	flags.Int64Var(&f.shutdown, "shutdown", 15, "seconds of a shutdown, with --suspend")
}

// longestPower bounds the seconds of a boot, a shutdown, and SuspendTime.
const longestPower = 1e6

// apply puts them into an experiment.
func (f *powerFlags) apply(e *simulate.Experiment) (err error) {
	if f.watts != "" {
		if f.drawn, err = energy.ParseWatts(f.watts); err != nil {
			return fmt.Errorf("--watts: %w", err)
		}
	}
	for _, x := range []struct {
		name  string
		value int64
		least int64
	}{{"suspend", f.suspend, 0}, {"boot", f.boot, 1}, {"shutdown", f.shutdown, 1}} {
		if x.value < x.least || x.value > longestPower {
			return fmt.Errorf("--%s=%d: must be within %d … %.0f", x.name, x.value, x.least, longestPower)
		}
	}
	if f.suspend == 0 {
		return nil
	}
	second := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	e.Cluster.PowerSaving = slurmsim.PowerSaving{SuspendTime: second(f.suspend), SuspendTimeout: second(f.shutdown), Boot: second(f.boot), ResumeTimeout: second(2*f.boot + 60)}
	return nil
}

// account computes the energy of all results.
func (f *powerFlags) account(r *simulate.Result, others []other) {
	if f.watts == "" {
		return
	}
	r.Account(f.drawn)
	for i := range others {
		o := &others[i]
		o.result.Account(f.drawn)
		o.Metrics = o.result.Metrics
	}
}
