package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/version"
	"github.com/evoslurm/evoslurm/adapter/internal/wholefile"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/recorder"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var users = regexp.MustCompile("alice|mallory|carol")

// TestBundle: all is in it, nothing secret is, and with a mask no user.
func TestBundle(t *testing.T) {
	cfg := config.Default()
	cfg.Recorder.Dir = t.TempDir()
	cfg.Deny.Users = []string{"mallory"}
	cfg.Strategies.Parameters = []string{"token=secret"}
	now := time.Unix(1.7e9, 0)
	r := recorder.New(cfg.Recorder.Dir, 4, version.Of(linked), recorder.Start{Begun: now, Config: cfg})
	r.Inputs(now, []msg.Input{msg.Observation{Begun: now, Jobs: []slurmctl.Job{{ID: 1, User: "alice"}}}})
	r.Effects(now, nil)
	must.OK(t, r.Close())
	must.OK(t, os.WriteFile(filepath.Join(cfg.Recorder.Dir, "20200101T000000.000Z-000000.evorec"), []byte("of alice"), 0o600))
	for _, mask := range []bool{false, true} {
		b := &bundle{cfg: cfg, now: now}
		answers := &report{users: []string{"carol"}}
		answers.add("sidecar", ok, "alice at /home/alice/x; max_delay=1h by carol", "")
		if mask {
			b.mask = maskOf(cfg, answers)
		}
		must.OK(t, b.collect(answers))
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		must.OK(t, wholefile.Write(file, 0o600, b.pack))
		packed := unpack(t, file)
		for name, text := range packed {
			if strings.Contains(text, "secret") || mask && users.MatchString(text) {
				t.Errorf("mask %v: %s has\n%s", mask, name, text)
			}
		}
		for _, want := range []string{"versions.txt", "config.json", "doctor.txt", "recorder/20231114T221320.000Z-000000.evorec"} {
			if _, there := packed["evoslurm/"+want]; !there {
				t.Errorf("mask %v: %s is not in it", mask, want)
			}
		}
		if _, left := packed["evoslurm/recorder/left-out.txt"]; left != mask {
			t.Errorf("mask %v: files left out: %v", mask, left)
		}
	}
}

// unpack returns the files of a bundle by name.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	must.OK(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must.OK(t, err)
	files := map[string]string{}
	for packed := tar.NewReader(z); ; {
		h, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must.OK(t, err)
		text, err := io.ReadAll(packed)
		must.OK(t, err)
		files[h.Name] = string(text)
	}
}
