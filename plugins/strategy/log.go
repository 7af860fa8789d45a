package strategy

import (
	"os"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// go-plugin logs by hclog, the sidecar by logrus. hclog stays in this file: what goes wrong with a plugin comes
// back as an error, which the sidecar logs, and what a plugin writes on standard error its runner has.

// hostLog is go-plugin's log in the sidecar.
func hostLog() hclog.Logger { return hclog.NewNullLogger() }

// pluginLog is go-plugin's log in a plugin: on standard error, for the runner.
func pluginLog() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr})
}

// runnerFunc is a runner as go-plugin wants it, which gives it a logger.
func runnerFunc(run Runner) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	return func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
		return run(cmd, socketDir)
	}
}
