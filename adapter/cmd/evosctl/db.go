package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
)

const dbHelp = `Check, back up, or restore the sidecar's database, as root or as the sidecar's user on its host.

check reads it, or another file, as a whole: the pages, references between tables, and the schema.
backup copies it into a new file while the sidecar works. The file is there whole or not at all, with
mode 0600; none is overwritten. Root writes as the owner of the folder.
restore puts a copy of a backup in its place. The sidecar must be stopped. The old database is kept
beside it. At its next start, the sidecar brings the restored one up to date from Slurm.

Exit status: 1 if the file must not be used, or nothing was done; else 0.`

// newDB returns the commands for the database. evoslurmd does the work: this program has no sqlite.
func newDB() *cobra.Command {
	db := &cobra.Command{Use: "db", Short: "Check, back up, or restore the sidecar's database", Long: dbHelp}
	for _, c := range []struct {
		use, short string
		args       cobra.PositionalArgs
	}{
		{"check [FILE]", "Check the database, or another file", cobra.MaximumNArgs(1)},
		{"backup FILE", "Copy the database into a new file", cobra.ExactArgs(1)},
		{"restore FILE", "Put a copy of a backup in place of the database", cobra.ExactArgs(1)},
	} {
		db.AddCommand(&cobra.Command{Use: c.use, Short: c.short, Args: c.args, RunE: func(cmd *cobra.Command, args []string) error {
			program, err := evoslurmd()
			if err != nil {
				return err
			}
			all := []string{"db", cmd.Name()}
			if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
				all = append(all, "--config="+f.Value.String())
			}
			run := exec.CommandContext(cmd.Context(), program, append(append(all, "--"), args...)...)
			run.Stdin, run.Stdout, run.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
			var ended *exec.ExitError
			if err := run.Run(); errors.As(err, &ended) {
				return exitStatus(max(ended.ExitCode(), 1))
			} else if err != nil {
				return err
			}
			return nil
		}})
	}
	return db
}

// evoslurmd returns the sidecar's program: in the path, or where it is installed beside this one.
func evoslurmd() (string, error) {
	if path, err := exec.LookPath("evoslurmd"); err == nil {
		return path, nil
	}
	if own, err := os.Executable(); err == nil {
		for _, dir := range []string{".", "../sbin"} {
			if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), dir, "evoslurmd")); err == nil {
				return path, nil
			}
		}
	}
	return "", errors.New("evoslurmd is not installed here: run this on the sidecar's host")
}
