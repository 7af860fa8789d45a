package main

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
)

// two is a Backend with a job of root's and one of daemon's, the uid 1.
type two struct{ api.Backend }

func (two) Status(context.Context) (api.Status, error) { return api.Status{}, nil }
func (two) Jobs(context.Context, bool) ([]api.Job, error) {
	return []api.Job{{ID: 1, Name: "roots", State: "queued"}, {ID: 2, Name: "daemons", UID: 1, State: "queued"}}, nil
}
func (two) Cluster(context.Context) (*api.Cluster, error) { return &api.Cluster{}, nil }

// TestPageOnTCP: who signs in on the page's own address reads what he may read, as with PrivateData here.
func TestPageOnTCP(t *testing.T) {
	const tokens = "# of tests\nroot 00000000000000000000\ndaemon 11111111111111111111\n"
	file := filepath.Join(t.TempDir(), "web.tokens")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	server := &api.Server{Backend: two{}, Log: log, Reading: func() api.Reading { return api.OwnJobs }}
	cfg := config.Web{Listen: "127.0.0.1:0", Base: "/evo/", Tokens: file}
	side, err := listenWeb(cfg, nil, server, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- side.Serve(ctx) }()
	base := "http://" + side.Addr().String() + "/evo/"
	browser := &http.Client{}
	read := func(form url.Values, address string) (int, string) {
		method := http.MethodGet
		if form != nil {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	if code, text := read(nil, base); code != http.StatusUnauthorized || strings.Contains(text, "daemons") {
		t.Errorf("without a token: %d %s", code, text)
	}
	for token, c := range map[string]struct{ sees, not string }{
		"00000000000000000000": {"daemons", "\x00"}, "11111111111111111111": {"daemons", "roots"}, "22222222222222222222": {"Sign in", "daemons"},
	} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser.Jar = jar
		if code, text := read(url.Values{"token": {token}}, base+"signin"); !strings.Contains(text, c.sees) || strings.Contains(text, c.not) {
			t.Errorf("token %s: %d %s", token, code, text)
		}
	}
	browser.Jar = nil
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := listenWeb(cfg, nil, server, log); err == nil || !strings.Contains(err.Error(), "web.tokens: "+file+": others may read it") {
		t.Errorf("a file that others read: %v", err)
	}
	cfg.Tokens = ""
	server.Reading = func() api.Reading { return api.Anybody }
	if side, err = listenWeb(cfg, nil, server, log); err != nil {
		t.Fatal(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	go func() { done <- side.Serve(ctx) }()
	if code, text := read(nil, "http://"+side.Addr().String()+"/evo/"); code != http.StatusOK || !strings.Contains(text, "roots") {
		t.Errorf("everybody may read: %d %s", code, text)
	}
}
