package submit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/getopt"
	placement "github.com/evoslurm/evoslurm/adapter/job/place"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
)

// A job with input files (--stage-in) that are not on the cluster where it runs fetches them before its script begins: a command
// of the site is written into the script, as its first command. It runs as the user, on the job's first node. The first step
// lasts longer by the time of the transfers, so that the plan has them: a step without compute, on the first step's nodes.

// staging says which input files a job must fetch before its script.
type staging struct {
	moves   []placement.Move
	seconds int64
	command string
}

// line returns the command of the script that fetches the files, or "" if there are none.
func (s staging) line() string {
	if len(s.moves) == 0 {
		return ""
	}
	var from, files string
	for i, m := range s.moves {
		if i > 0 {
			from += " "
		}
		from, files = from+m.From, files+" "+quote(m.File)
	}
	return "EVO_STAGE_FROM=" + quote(from) + " " + quote(s.command) + " --" + files + " || exit"
}

// inputs returns the job's input files: those of the command line, otherwise of the variable, otherwise of the script.
func (src sources) inputs() ([]string, error) {
	for _, layer := range [][]getopt.Option{src.options.command, src.options.own} {
		var r request.Request
		for _, o := range layer {
			if o.Name == "stage-in" {
				if err := r.Set(o.Name, o.Value); err != nil {
					return nil, err
				}
			}
		}
		if r.Inputs != nil {
			return r.Inputs, nil
		}
	}
	return src.evo.Inputs, nil
}

// staging returns how the files get to the cluster, or why they cannot.
func (s Site) staging(files []placement.File, rates []config.Bandwidth) (*staging, error) {
	moves, seconds, err := placement.Staging(files, s.Name, func(from, to string) float64 { return config.RateIn(rates, from, to) })
	if err == nil && len(moves) > 0 && s.StageIn == "" {
		err = fmt.Errorf("it has no command that fetches files, such as %q (clusters.stage_in)", moves[0].File)
	}
	return &staging{moves, seconds, s.StageIn}, err
}

// located returns where input files are, and the bandwidths between clusters. A file that is nowhere is an error.
func (c *Command) located(ctx context.Context, names []string) (files []placement.File, rates []config.Bandwidth, err error) {
	if len(names) == 0 {
		return nil, nil, nil
	}
	if rates, err = c.Clusters.Rates(); err != nil {
		return nil, nil, fmt.Errorf("clusters.bandwidths: %w", err)
	}
	var known map[string]placement.File
	if table := c.Clusters.Replicas; table != "" {
		f, err := os.Open(table)
		if err != nil {
			return nil, nil, fmt.Errorf("clusters.replicas: %w", err)
		}
		defer f.Close()
		if known, err = replicasIn(f, names); err != nil {
			return nil, nil, fmt.Errorf("clusters.replicas: %s, %w", table, err)
		}
	}
	var sites []Site
	for _, name := range names {
		f, found := known[name]
		if !found {
			if sites == nil {
				if sites, err = c.Sites(ctx, []string{"all"}); err != nil {
					return nil, nil, err
				}
			}
			if f, err = mounted(name, sites); err != nil {
				return nil, nil, fmt.Errorf("--stage-in: the table of replicas (clusters.replicas) does not name %q, and %w", name, err)
			}
		}
		files = append(files, f)
	}
	return files, rates, nil
}

// mounted returns on which clusters a file is that this host sees: those that see its folder, and the one that it is linked to.
func mounted(name string, sites []Site) (placement.File, error) {
	f := placement.File{Name: name}
	if !filepath.IsAbs(name) {
		return f, errors.New("it is no absolute path")
	}
	info, err := os.Stat(name)
	if err != nil {
		return f, err
	}
	if !info.Mode().IsRegular() {
		return f, errors.New("it is no regular file")
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return f, err
	}
	f.Size = info.Size()
	for _, s := range sites {
		sees := func(path string) bool {
			return slices.ContainsFunc(s.Mounts, func(folder string) bool {
				within, err := filepath.Rel(folder, path)
				return err == nil && filepath.IsLocal(within)
			})
		}
		if sees(name) && sees(real) {
			f.On = append(f.On, s.Name)
		}
	}
	if f.On == nil {
		return f, errors.New("no cluster has its folder among clusters.mounts")
	}
	return f, nil
}

// stage has the job fetch its input files before its script: its first step lasts longer. nil: no cluster is known that they
// must get to.
func (r *submission) stage(s *staging) error {
	if r.request.Inputs == nil {
		return nil
	}
	switch {
	case s == nil:
		return errors.New("--stage-in is for a job that evosbatch places: give --clusters=NAME[,NAME…]|all, and no --rigid")
	case r.request.Drive.Means().StepsAreJobs:
		return errors.New("--stage-in is for one job: in a chain, let a job before it fetch the files (--dependency)")
	case len(r.request.Components) > 0:
		return errors.New("--stage-in and --component exclude each other: let a job before it fetch the files (--dependency)")
	case r.timed:
		return errors.New("--stage-in: a job with --malleable or --best-effort lasts as long as its --time: give --profile=MIN-MAX@DURATION")
	}
	r.staging = *s
	if len(s.moves) == 0 {
		return nil
	}
	if !r.options.has("wrap") && !shells.Match(r.script.text) {
		return errors.New("--stage-in: the files are fetched by a command that evosbatch writes into the script, which must begin with #!/bin/sh or another shell of its kind")
	}
	longer := func(p planner.Profile) (planner.Profile, error) {
		p = slices.Clone(p)
		p[0].Duration += s.seconds
		return p, p.Validate()
	}
	var err error
	if m := r.request.Moldable; m != nil {
		one := *m
		one.Alternatives = slices.Clone(m.Alternatives)
		for k, p := range m.Alternatives {
			if one.Alternatives[k], err = longer(p); err != nil {
				return fmt.Errorf("--stage-in: %w", err)
			}
		}
		r.request.Moldable, r.request.Profile = &one, one.Alternatives[one.Submitted()]
	} else if r.request.Profile, err = longer(r.request.Profile); err != nil {
		return fmt.Errorf("--stage-in: %w", err)
	}
	r.inScript = false // its #EVO lines are about the time without transfers
	return nil
}

// shells matches the beginning of a script in the language of POSIX shells.
var shells = regexp.MustCompile(`^#! *(/\S*/)?(env +)?(/\S*/)?(sh|ash|bash|dash|ksh|mksh|zsh)[ \t\n]`)

// withStaging returns the job with the command that fetches its files as the first one of its script, and what removes the
// script again once sbatch has read it. sbatch gets it under the same name, as the job's name.
func (r submission) withStaging() (_ submission, done func(), err error) {
	done = func() {}
	line := r.staging.line()
	if line == "" || r.testOnly {
		return r, done, nil
	}
	if r.options.has("wrap") {
		r.options.command = slices.Clone(r.options.command)
		for i, o := range r.options.command {
			if o.Name == "wrap" {
				o.Value = line + "\n" + o.Value
				r.options.command[i] = getopt.Option{Name: o.Name, Value: o.Value, HasValue: true, Words: []string{"--wrap=" + o.Value}, At: o.At}
			}
		}
		return r, done, nil
	}
	if r.script.text = request.WithCommand(r.script.text, line); r.script.fromStdin {
		return r, done, nil
	}
	dir, err := os.MkdirTemp("", "evosbatch-")
	if err != nil {
		return r, done, fmt.Errorf("writing the script: %w", err)
	}
	file := filepath.Join(dir, r.script.name)
	r.operands = append([]string{file}, r.operands[1:]...)
	return r, func() { _ = os.RemoveAll(dir) }, os.WriteFile(file, r.script.text, 0o600)
}
