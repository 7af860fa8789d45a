// Command strategytest reports whether an executable is a strategy or a
// malleability policy that Evoslurm can use: it runs the conformance kit against it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/evoslurm/evoslurm/plugins/strategytest"
)

const help = "usage: strategytest PATH\nRuns the conformance tests of strategies and malleability policies against the plugin PATH; exit status 1 if one fails."

var linked = "(devel)" // the version, set by the linker

func main() {
	if len(os.Args) == 2 && (os.Args[1] == "-V" || os.Args[1] == "--version") {
		fmt.Println("evoslurm " + linked)
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "--usage" {
		fmt.Println("Usage: strategytest PATH")
		return
	}
	if len(os.Args) == 2 && (os.Args[1] == "-h" || os.Args[1] == "--help") {
		fmt.Println(help)
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, help)
		os.Exit(2)
	}
	if err := runnable(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "strategytest: %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
	failed := 0
	subject := strategytest.Process(os.Args[1])
	for _, c := range strategytest.CasesFor(context.Background(), subject) {
		began := time.Now()
		err := c.Run(context.Background(), subject)
		if err != nil {
			failed++
			fmt.Printf("FAIL  %s: %v\n", c.Name, err)
			continue
		}
		fmt.Printf("ok    %s (%.2f s)\n", c.Name, time.Since(began).Seconds())
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// runnable returns why a file cannot be started, once and not with every test.
func runnable(path string) error {
	absolute, err := filepath.Abs(path) // without searching PATH, as the tests do
	if err == nil {
		_, err = exec.LookPath(absolute)
	}
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if missing, ok := errors.AsType[*fs.PathError](err); ok {
		err = missing.Err
	}
	return err
}
