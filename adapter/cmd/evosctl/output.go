package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/injob"
)

// output is how an allocation is printed: as a shell's commands or as JSON.
type output struct {
	shell   string
	json    bool
	noSlurm bool // only env
}

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.shell, "shell", "sh", "write for sh (also bash, dash, ksh, zsh), csh (tcsh) or fish")
	cmd.Flags().BoolVar(&o.json, "json", false, "write the allocation as JSON instead")
}

func (o *output) print(a api.Allocation) error {
	a.Restarts = injob.Restarts(a, os.Getenv)
	e, err := injob.ExportsOf(a, os.Getenv)
	if err != nil {
		return err
	}
	if err := errors.Join(hookErrors...); err != nil {
		e.Set = append(e.Set, injob.Var{Name: injob.VarHookError, Value: strings.ReplaceAll(err.Error(), "\n", "; ")})
	} else if os.Getenv(injob.VarHookError) != "" {
		e.Unset = append(e.Unset, injob.VarHookError)
	}
	if o.noSlurm {
		e = e.WithoutSlurm(os.Environ())
	}
	if !o.json {
		return o.export(e)
	}
	answer := struct {
		api.Allocation
		Environ map[string]*string `json:"environ"` // the same as for a shell; null: to be unset
	}{a, map[string]*string{}}
	for _, name := range e.Unset {
		answer.Environ[name] = nil
	}
	for _, v := range e.Set {
		answer.Environ[v.Name] = &v.Value
	}
	return printJSON(os.Stdout, answer)
}

// export prints the commands for the shell to evaluate.
func (o *output) export(e injob.Exports) error {
	sh, err := injob.ParseShell(o.shell)
	if err != nil {
		return err
	}
	_, err = fmt.Print(sh.Exports(e))
	return err
}

// fail reports an error, on stderr for people and on stdout for the shell, whose eval of it fails.
// With final, asking again will not help.
func (o *output) fail(err error, status int, final bool) error {
	say("%v", err)
	if o.json {
		json.NewEncoder(os.Stdout).Encode(api.Error{Error: err.Error()})
	} else if sh, e := injob.ParseShell(o.shell); e == nil {
		fmt.Print(sh.Failure(err.Error(), final))
	}
	return exitStatus(status)
}
