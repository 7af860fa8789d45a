package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// quiet returns a log that a test reads.
func quiet() (*logrus.Logger, *bytes.Buffer) {
	log, text := logrus.New(), &bytes.Buffer{}
	log.SetOutput(text)
	return log, text
}

// TestOpenStore: a database that cannot be read is moved aside, loudly; one of a later
// release is not.
func TestOpenStore(t *testing.T) {
	ctx := t.Context()
	for name, spoil := range map[string]func(path string) error{
		"no database": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("spoilt", 5000)), 0o600) },
		"a row that nobody can read": func(path string) error {
			st, err := store.Open(ctx, path)
			if err != nil {
				return err
			}
			defer st.Close()
			job := &store.Job{Owned: row.Owned{SlurmID: 7}, Life: row.Life{State: store.Running}, Terms: row.Terms{Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}
			return errors.Join(st.AddJob(ctx, job), st.SetParts(ctx, job.ID, []store.Part{{SlurmID: 7, Step: 1, NodeList: "n["}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			must.OK(t, spoil(path))
			log, text := quiet()
			st, err := OpenStore(ctx, path, log)
			must.OK(t, err)
			events, err := st.ReadEvents(ctx, store.EventFilter{Sidecar: true, Limit: 10})
			if err != nil || len(events) != 1 || events[0].Kind != "database replaced" || !strings.Contains(string(events[0].Detail), path+".malformed-") {
				t.Errorf("events: %v, %v", events, err)
			}
			if !strings.Contains(text.String(), "THE DATABASE IS MALFORMED") {
				t.Errorf("the log: %s", text)
			}
			st.Close()
			text.Reset()
			if st, err = OpenStore(ctx, path, log); err != nil || text.Len() > 0 {
				t.Fatalf("opened again: %v, %s", err, text)
			}
			st.Close()
			if kept, err := filepath.Glob(path + ".malformed-*"); err != nil || len(kept) == 0 {
				t.Errorf("kept: %q, %v", kept, err)
			}
		})
	}
}

// TestMalformedWhileItWorks: the sidecar ends, since nothing can be written down any more;
// started again it begins with a new database.
func TestMalformedWhileItWorks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	st, err := store.Open(t.Context(), path)
	must.OK(t, err)
	defer st.Close()
	log, _ := quiet()
	cfg := config.Default()
	cfg.Database, cfg.Recorder.MiB = path, 0
	c, err := New(cfg, &slurmctl.Client{Dir: t.TempDir(), Timeout: time.Second}, st, log, "test")
	must.OK(t, err)
	broken := fmt.Errorf("event: %w", sqlite3.Error{Code: sqlite3.ErrCorrupt})
	c.books.ctx = t.Context()
	c.books.check(broken)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.Run(ctx); !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
}
