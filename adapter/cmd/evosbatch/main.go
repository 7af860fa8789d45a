package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/api/reach"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/job/submit"
	"github.com/evoslurm/evoslurm/adapter/show/ran"
	"github.com/evoslurm/evoslurm/slurmctl"
)

var linked string // the version, set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := 0
	root := newCommand(&status)
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		status = 1
	}
	os.Exit(status)
}

// newCommand is evosbatch for cobra, which does no more here than shell
// completion: the options are sbatch's, which a flag package cannot know.
func newCommand(status *int) *cobra.Command {
	return &cobra.Command{
		Use:                   "evosbatch [sbatch options] --profile=NODES@DURATION[,…] script [args]",
		Short:                 "Submit an evolving job: sbatch with an evolution profile",
		DisableFlagParsing:    true,
		DisableFlagsInUseLine: true,
		SilenceUsage:          true,
		Args:                  cobra.ArbitraryArgs,
		ValidArgsFunction:     propose,
		CompletionOptions:     cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			*status = submitJob(cmd.Context(), args)
			return nil
		},
	}
}

func submitJob(ctx context.Context, args []string) int {
	site, _, err := config.Load(nil)
	if err != nil { // a submission needs Slurm only
		fmt.Fprintf(os.Stderr, "evosbatch: warning: %v; going on with defaults\n", err)
		site = config.Default()
	}
	sbatch := "sbatch"
	if site.Slurm.Bin != "" {
		sbatch = filepath.Join(site.Slurm.Bin, sbatch)
	}
	client, _ := reach.Client(site) // nil: a submission needs Slurm only
	status, slurm := word(ctx, client), &slurmctl.Client{Dir: site.Slurm.Bin, Timeout: site.Slurm.Timeout}
	c := submit.Command{
		Args:       args,
		Environ:    os.Environ(),
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Sbatch:     sbatch,
		Cluster:    slurm,
		Defaults:   request.Request{ExpandLimit: site.ExpandLimit, Drive: site.Drive},
		Partitions: site.Partitions,
		MaxGrace:   site.Malleable.MaxGrace,
		BestEffort: site.BestEffort,
		MayPrefer:  site.MayPrefer,
		MayEvolve: func(ctx context.Context, job config.Names) ([]string, error) {
			return mayEvolve(ctx, site, client, job)
		},
		Note:     func(ctx context.Context) string { return cmp.Or(reach.RefusedToken(ctx, slurm), drained(status())) },
		LastRuns: func(ctx context.Context, name string) (string, string, error) { return lastRuns(ctx, site, name) },
		Sites:    func(ctx context.Context, names []string) ([]submit.Site, error) { return sites(ctx, site, names) },
		Clusters: site.Clusters,
		Refuses:  func(context.Context) error { return observing(site, status()) },
		Progress: progress(os.Stderr),
		Help:     func() { fmt.Print(help) },
		Usage:    func() { fmt.Print(usage) },
		Version:  func() { fmt.Print(versions(ctx, sbatch)) },
		Exec:     replaceProcess,
	}
	return c.Run(ctx)
}

// sidecarPatience is how long a submission that needs the sidecar waits for it.
const sidecarPatience = 15 * time.Second

// wordPatience is how long a submission waits for the sidecar's word on itself: it needs only Slurm.
const wordPatience = 2 * time.Second

// word returns what asks the sidecar, once, what it says of itself: nothing, if it does not answer soon.
func word(ctx context.Context, client *api.Client) func() api.Status {
	return sync.OnceValue(func() (s api.Status) {
		if client != nil {
			limited, cancel := context.WithTimeout(ctx, wordPatience)
			defer cancel()
			client.Waiting = func(string, error) { cancel() }
			s, _ = client.Status(limited)
		}
		return s
	})
}

// drained says that the sidecar is switched off, if it is; otherwise "".
func drained(s api.Status) string {
	switch {
	case s.Drain == nil:
		return ""
	case s.Drain.Release:
		return s.Drain.Words + ": this job is let go as an ordinary one"
	}
	return s.Drain.Words + ": this job stays parked until evosctl resume"
}

// lastRuns returns the profile that would have fitted this user's last runs, as the sidecar recorded them.
func lastRuns(ctx context.Context, site config.Config, name string) (string, string, error) {
	client, err := reach.Client(site)
	if err != nil {
		return "", "", err
	}
	limited, cancel := context.WithTimeout(ctx, sidecarPatience)
	defer cancel()
	p, what, err := ran.Last(limited, client, uint32(os.Getuid()), name)
	if err != nil && limited.Err() != nil {
		return "", "", fmt.Errorf("%w; runs are known to the sidecar alone: give the profile itself, or @NAME", err)
	}
	return p.String(), what, err
}

// observing returns an error if the sidecar drives no jobs: by its own word or, if it does not answer, by the
// configuration.
func observing(site config.Config, s api.Status) error {
	if cmp.Or(s.Mode, string(site.Mode)) != string(config.ModeObserve) {
		return nil
	}
	return errors.New("Evoslurm only observes this cluster (mode: observe), and drives no evolving jobs yet: " +
		"add --rigid to submit the peak of the profile as an ordinary job for the whole time")
}

// replaceProcess replaces this process by the program, so that its output, waiting, and status are
// its own.
func replaceProcess(path string, argv, environ []string, stdin *os.File) error {
	if stdin != os.Stdin {
		if err := unix.Dup3(int(stdin.Fd()), 0, 0); err != nil {
			return fmt.Errorf("passing the script on: %w", err)
		}
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, argv, environ))
}

// versions returns this program's version and, on its own line, that of the sbatch that it runs.
func versions(ctx context.Context, sbatch string) string {
	text := version.Line(linked) + "\n"
	if out, err := exec.CommandContext(ctx, sbatch, "--version").Output(); err == nil {
		text += string(out)
	}
	return text
}
