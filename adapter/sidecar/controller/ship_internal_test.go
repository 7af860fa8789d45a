package controller

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/keeper"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
)

// TestShip: a sidecar on a second host begins with the database and the latest settings of the first one, not with
// what it had itself.
func TestShip(t *testing.T) {
	ctx := t.Context()
	first, second := filepath.Join(t.TempDir(), "evoslurm.db"), filepath.Join(t.TempDir(), "evoslurm.db")
	own := openDatabase(t, second)
	setIn(t, own, "old", "of its own")
	own.Close()
	st := openDatabase(t, first)
	defer st.Close()
	for range 40 { // several pieces
		if err := st.AddEvent(ctx, 0, time.Now(), "test", map[string]string{"text": string(make([]byte, 20_000))}); err != nil {
			t.Fatal(err)
		}
	}
	setIn(t, st, "drain", "drain")
	c := &Controller{store: st}
	c.cfg.Database = first
	log := logrus.New()
	log.SetOutput(io.Discard)
	client, end := shipFrom(t, c, log)
	follower := &keeper.Follower{Client: client, Database: second, Host: "two", Version: "v", Log: log}
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { follower.Run(following); close(followed) }()
	c.ships.lease = func() (string, time.Time) { return "evo_lease_3", time.Unix(1_800_000_000, 0) }
	until(t, "the second host has a copy", func() bool { l := c.leaseNow(); return l.Standby != nil && !l.Standby.Copied.IsZero() })
	setIn(t, st, "deny.users", "alice") // after the copy
	until(t, "the second host has the new setting", func() bool {
		text, err := os.ReadFile(second + ".settings")
		return err == nil && strings.Contains(string(text), "alice")
	})
	stop()
	<-followed
	end()
	took := openDatabase(t, second)
	defer took.Close()
	if err := keeper.Apply(ctx, took, second); err != nil {
		t.Fatal(err)
	}
	all, err := took.Settings(ctx)
	if err != nil || len(all) != 2 || all[0].Key != "deny.users" || all[1].Key != "drain" {
		t.Errorf("settings %+v, %v", all, err)
	}
	if events, err := took.Events(ctx, 0, 0, 100); err != nil || len(events) < 40 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if l := c.leaseNow(); l.Name != "evo_lease_3" || l.Standby.Host != "two" || l.Standby.Version != "v" {
		t.Errorf("lease %+v", l)
	}
}

// TestShipElsewhere checks that the sidecar of another cluster gets nothing, counts as no standby, and keeps its own database.
func TestShipElsewhere(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "evoslurm.db"), filepath.Join(t.TempDir(), "evoslurm.db")
	st, own := openDatabase(t, first), openDatabase(t, second)
	defer st.Close()
	setIn(t, own, "deny.users", "alice")
	own.Close()
	c := &Controller{store: st}
	c.cfg.Database, c.ships.lease = first, func() (string, time.Time) { return "evo_lease_1", time.Time{} }
	log, hook := test.NewNullLogger()
	client, end := shipFrom(t, c, log)
	client.ClusterName = func(context.Context) (string, error) { return "there", nil }
	c.view.Store(&view{})
	if _, err := c.Ship(t.Context(), api.ShipRequest{Host: "two", Cluster: "there"}); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("while Slurm has not been asked: %v", err)
	}
	c.view.Store(&view{Status: api.Status{Cluster: "here"}})
	following, stop := context.WithCancel(t.Context())
	followed := make(chan struct{})
	go func() {
		(&keeper.Follower{Client: client, Database: second, Host: "two", Log: log}).Run(following)
		close(followed)
	}()
	until(t, "the follower complains", func() bool { return hook.LastEntry() != nil })
	err, _ := hook.LastEntry().Data[logrus.ErrorKey].(error)
	if want := "drives cluster here, and the one on two is for cluster there: correct api there"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
	stop()
	<-followed
	end()
	if l := c.leaseNow(); l.Standby != nil {
		t.Errorf("it counts as the standby: %+v", l.Standby)
	}
	kept := openDatabase(t, second)
	defer kept.Close()
	if all, err := kept.Settings(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("its own settings became %+v, %v", all, err)
	}
}

// TestShare checks that a setting is on the second host before it is confirmed.
func TestShare(t *testing.T) {
	cfg, st := alone(t)
	second := filepath.Join(t.TempDir(), "evoslurm.db")
	log, _ := quiet()
	live(t, cfg, st, func(ctx context.Context, c *Controller) {
		c.Shared(func() (string, time.Time) { return "evo_lease_3", time.Time{} })
		client, end := shipFrom(t, c, log)
		following, stop := context.WithCancel(ctx)
		followed := make(chan struct{})
		go func() {
			(&keeper.Follower{Client: client, Database: second, Log: log}).Run(following)
			close(followed)
		}()
		until(t, "the second host has called", func() bool { return c.leaseNow().Standby != nil })
		for _, name := range []string{"alice", "bob"} {
			if _, err := c.ChangeSettings(ctx, api.SettingsRequest{Add: map[string][]string{"deny.users": {name}}}, "root"); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(second + ".settings"); err != nil || !strings.Contains(string(text), name) {
				t.Errorf("the second host has %s, %v; want %s", text, err, name)
			}
		}
		stop()
		<-followed
		end()
	})
}

// TestStatusDuringCopy checks that the status does not wait for a copy of the database.
func TestStatusDuringCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evoslurm.db")
	st := openDatabase(t, path)
	defer st.Close()
	for range 40 {
		if err := st.AddEvent(t.Context(), 0, time.Now(), "test", map[string]string{"text": strings.Repeat("x", 1_000_000)}); err != nil {
			t.Fatal(err)
		}
	}
	c := &Controller{store: st}
	c.cfg.Database, c.ships.lease = path, func() (string, time.Time) { return "", time.Time{} }
	under := func() bool { _, err := os.Stat(path + ".copy"); return err == nil }
	beside := false
	for end := time.Now().Add(longest); !beside; { // the copy may be done before this goroutine looks
		if time.Now().After(end) {
			t.Fatal("the status waits for the copy")
		}
		copied := make(chan error, 1)
		go func() { _, err := c.Ship(t.Context(), api.ShipRequest{}); copied <- err }()
		until(t, "the copy has begun", func() bool { return under() || len(copied) > 0 })
		c.leaseNow()
		beside = under()
		if err := <-copied; err != nil {
			t.Fatal(err)
		}
		c.ships.number = 0 // it is old
	}
}

// longest is how long a test waits for what happens at once on a machine that is not busy.
const longest = 2 * time.Minute

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v until %s", longest, what)
		}
	}
}

func openDatabase(t *testing.T, path string) *store.Store {
	st, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func setIn(t *testing.T, st *store.Store, key, value string) {
	text, err := json.Marshal(value)
	if err == nil {
		err = st.SetSetting(t.Context(), store.Setting{Key: key, Value: text, By: "root", At: time.Unix(1_800_000_000, 0)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// shipFrom serves what a controller ships.
func shipFrom(t *testing.T, c *Controller, log *logrus.Logger) (client *api.Client, end func()) {
	dir := t.TempDir()
	server := &api.Server{Log: log, Socket: dir + "/s", Ship: c.Ship}
	if err := errors.Join(os.Chmod(dir, 0o755), server.Listen()); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	client, err := api.NewClient("unix://"+dir+"/s", api.Munge{})
	if err != nil {
		t.Fatal(err)
	}
	return client, func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
