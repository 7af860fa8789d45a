package builtin

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/plugins/strategytest"
)

// bin is the folder of the plugins, built once.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "evoslurm-plugins-")
	if err != nil {
		panic(err)
	}
	if out, err := exec.Command("go", "build", "-o", dir, "../cmd/...").CombinedOutput(); err != nil {
		os.Stderr.Write(out)
		os.Exit(1)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestBuiltIn(t *testing.T) {
	for _, d := range All() {
		t.Run(d.Name, func(t *testing.T) { strategytest.Run(t, strategytest.Built(d)) })
	}
}

func TestPlugins(t *testing.T) {
	for _, d := range All() {
		t.Run(d.Name, func(t *testing.T) { strategytest.Run(t, strategytest.Process(filepath.Join(bin, d.Name))) })
	}
}
