package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestMain is also the process that serves an address.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == listener {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestApart checks that what serves an address has another account, no capability, and a filter of system calls.
func TestApart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this needs root, to give up its rights")
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	cfg := config.Default()
	cfg.Listen.User = "nobody"
	var pid int
	start := apart(cfg, log)
	server := &api.Server{Backend: two{}, Log: log, Reading: func() api.Reading { return api.Anybody }, Start: func(files []*os.File) (api.Process, error) {
		p, err := start(files)
		if err == nil {
			pid = p.(process).cmd.Process.Pid
		}
		return p, err
	}}
	tokens := t.TempDir() + "/tokens"
	must.OK(t, os.WriteFile(tokens, nil, 0o600))
	side, err := listenWeb(config.Web{Listen: "127.0.0.1:0", Base: "/evo/", Tokens: tokens}, nil, server, nil, log)
	must.OK(t, err)
	go side.Serve(t.Context())
	for path, want := range map[string]string{"": "By job", "style.css": "color", "s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/style.css": "color", "nothing": "no such page"} {
		res, err := http.Get("http://" + side.Addr().String() + "/evo/" + path)
		must.OK(t, err)
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Contains(text, []byte(want)) && path != "nothing" || res.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%q: %v %s", path, err, text)
		}
	}
	checkStatus(t, pid, map[string]string{"Uid": "65534 65534 65534 65534", "Groups": "", "CapEff": strings.Repeat("0", 16), "CapPrm": strings.Repeat("0", 16), "NoNewPrivs": "1", "Seccomp": "2"})
	if files, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd"); err != nil || len(files) > 16 {
		t.Errorf("it has %d files open (%v)", len(files), err)
	}
}

// checkStatus compares what the kernel shows of a process.
func checkStatus(t *testing.T, pid int, wants map[string]string) {
	t.Helper()
	status := must.Read(t, fmt.Sprintf("/proc/%d/status", pid))
	fields := map[string]string{}
	for line := range strings.SplitSeq(string(status), "\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	for name, want := range wants {
		if fields[name] != want {
			t.Errorf("%s is %q, want %q", name, fields[name], want)
		}
	}
}
