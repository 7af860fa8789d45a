// Slurmshim stands in for Slurm's commands in tests: installed under their names,
// it asks the test (package crash) what to do, runs the real command and
// passes on what it prints.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

func main() { os.Exit(run()) }

func run() int {
	name := filepath.Base(os.Args[0])
	socket := filepath.Join(filepath.Dir(os.Args[0]), crash.SocketName)
	args := append([]string{name}, os.Args[1:]...)
	answer, err := crash.Ask(socket, crash.Question{Moment: crash.Before, Args: args})
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: slurmshim: %v\n", name, err)
		return 1
	}
	switch answer.Action {
	case crash.Refuse:
		fmt.Fprintf(os.Stderr, "%s: error: Unable to contact slurm controller (connect failure)\n", name)
		return 1
	case crash.Hang:
		time.Sleep(time.Hour)
	}
	real, err := exec.LookPath(name) // the shims' folder is not in PATH
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: slurmshim: %v\n", name, err)
		return 1
	}
	cmd := exec.Command(real, os.Args[1:]...)
	cmd.Env = append(os.Environ(), answer.Env...)
	var out bytes.Buffer
	// salloc is recognised by its output while it runs
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &out, os.Stderr
	err = cmd.Run()
	exit := 0
	if err != nil {
		exit = 1
		var failed *exec.ExitError
		if errors.As(err, &failed) && failed.ExitCode() > 0 {
			exit = failed.ExitCode()
		}
	}
	text := out.Bytes()
	switch answer.Action {
	case crash.Truncate:
		text = text[:len(text)/2]
	case crash.Garble:
		random := rand.New(rand.NewPCG(answer.Seed, 0))
		for range min(3, len(text)) {
			text[random.IntN(len(text))] = byte(random.IntN(256))
		}
	case crash.TimedOut:
		fmt.Fprintf(os.Stderr, "slurm_update error: Socket timed out on send/recv operation\n")
		text, exit = nil, 1
	}
	if _, err := crash.Ask(socket, crash.Question{Moment: crash.After, Args: args, Exit: exit}); err != nil {
		return 1
	}
	switch answer.Action {
	case crash.Lose:
		time.Sleep(time.Hour)
	case crash.Late:
		time.Sleep(answer.Delay)
	}
	os.Stdout.Write(text)
	return exit
}
