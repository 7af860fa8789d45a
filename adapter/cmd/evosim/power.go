package main

import (
	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
)

// powerFlags adds the flags of evosim run about energy.
func powerFlags(p *simulate.Power, flags *pflag.FlagSet) {
	*p = simulate.DefaultPower
	flags.StringVar(&p.Watts, "watts", "", "watts of a node, to show energy: busy=W,idle=W[,boot=W][,shutdown=W][,off=W], or \"config\" for those of --config, by type of node")
	flags.Int64Var(&p.Suspend, "suspend", 0, "Slurm's SuspendTime in seconds (default: nodes stay on)")
	flags.Int64Var(&p.Boot, "boot", p.Boot, "seconds of a boot, with --suspend, or of a plan that switches nodes off")
	flags.Int64Var(&p.Shutdown, "shutdown", p.Shutdown, "seconds of a shutdown, as --boot")
}

// account computes the energy of all results.
func (f *runFlags) account(r *simulate.Result, others []other) {
	f.power.Account(r)
	for i := range others {
		o := &others[i]
		f.power.Account(o.result)
		o.Metrics = o.result.Metrics
	}
}
