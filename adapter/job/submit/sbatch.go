package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// helpTime bounds a look at sbatch's help.
const helpTime = 10 * time.Second

// sbatch runs the program sbatch.
type sbatch struct {
	path           string // or a name to look for in PATH
	environ        []string
	stdin          *os.File
	stdout, stderr io.Writer
	exec           func(path string, argv, environ []string, stdin *os.File) error // Command.Exec
}

// help returns sbatch's help, or "".
func (s sbatch) help(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, helpTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.path, "--help")
	cmd.Env = s.environ
	cmd.WaitDelay = time.Second
	help, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(help)
}

// become replaces this process by sbatch.
func (s sbatch) become(words []string, text script) error {
	stdin := s.stdin
	if text.fromStdin {
		var err error
		if stdin, err = fileOf(text.text); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(s.path)
	if err != nil {
		return fmt.Errorf("sbatch: %w", err)
	}
	return s.exec(path, append([]string{"sbatch"}, words...), s.environ, stdin)
}

// command returns a call of sbatch. It has no deadline: sbatch has its own.
func (s sbatch) command(ctx context.Context, words []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.path, words...)
	cmd.Env, cmd.Stdin, cmd.Stderr = s.environ, s.stdin, s.stderr
	return cmd
}

// show prints a call of sbatch as one would type it, after assignments of variables.
func (s sbatch) show(words []string, variables ...[2]string) {
	var quoted []string
	for _, v := range variables {
		quoted = append(quoted, v[0]+"="+quote(v[1]))
	}
	quoted = append(quoted, "sbatch")
	for _, w := range words {
		quoted = append(quoted, quote(w))
	}
	fmt.Fprintln(s.stdout, strings.Join(quoted, " "))
}

// runWith runs a command with standard output to w. If it waits for the job, it gets a terminal:
// into a pipe, sbatch would write the ID only at its end.
func runWith(cmd *exec.Cmd, w io.Writer, waits bool) error {
	if !waits {
		cmd.Stdout = w
		return cmd.Run()
	}
	master, slave, err := openTerminal()
	if err != nil {
		cmd.Stdout = w
		return cmd.Run()
	}
	defer master.Close()
	cmd.Stdout = slave
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return err
	}
	_, _ = io.Copy(w, master) // ends with EIO once the other side is closed
	return cmd.Wait()
}

// statusOf returns the exit status of a sbatch that has ended.
func statusOf(err error) (int, error) {
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.Exited():
		return failed.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("sbatch: %w", err)
	}
	return 0, nil
}

// fileOf returns an unnamed file with this content, open at its beginning.
func fileOf(content []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "evosbatch-")
	if err != nil {
		return nil, fmt.Errorf("keeping the script from standard input: %w", err)
	}
	_ = os.Remove(f.Name())
	if _, err = f.Write(content); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("keeping the script from standard input: %w", err)
	}
	return f, nil
}
