package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/certs/certstest"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/observed"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// two is a Backend with a job of root's and one of daemon's, the uid 1.
type two struct{ api.Backend }

func (two) Status(context.Context) (api.Status, error) { return api.Status{}, nil }
func (two) Jobs(context.Context, bool) ([]api.Job, error) {
	return []api.Job{{ID: 1, Name: "roots", State: "queued"}, {ID: 2, Name: "daemons", UID: 1, State: "queued"}}, nil
}
func (two) History(context.Context, api.HistoryQuery) (api.History, error) { return api.History{}, nil }
func (two) Cluster(context.Context) (*api.Cluster, error)                  { return &api.Cluster{}, nil }

// TestPageOnTCP checks that a user who signs in on the page's own address reads what it may, here
// with PrivateData.
func TestPageOnTCP(t *testing.T) {
	const tokens = "# of tests\nroot 00000000000000000000\ndaemon 11111111111111111111\n"
	file := filepath.Join(t.TempDir(), "web.tokens")
	must.OK(t, os.WriteFile(file, []byte(tokens), 0o600))
	log := logrus.New()
	log.SetOutput(io.Discard)
	server := &api.Server{Backend: two{}, Log: log, Reading: func() api.Reading { return api.OwnJobs }}
	cfg := config.Web{Listen: "127.0.0.1:0", Base: "/evo/", Tokens: file}
	side, err := listenWeb(cfg, nil, server, certificates(config.Config{Web: cfg}), log)
	must.OK(t, err)
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
		must.OK(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := browser.Do(req)
		must.OK(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		must.OK(t, err)
		return res.StatusCode, string(text)
	}
	if code, text := read(nil, base); code != http.StatusUnauthorized || strings.Contains(text, "daemons") {
		t.Errorf("without a token: %d %s", code, text)
	}
	for token, c := range map[string]struct{ sees, not string }{
		"00000000000000000000": {"daemons", "\x00"}, "11111111111111111111": {"daemons", "roots"}, "22222222222222222222": {"Sign in", "daemons"},
	} {
		jar, err := cookiejar.New(nil)
		must.OK(t, err)
		browser.Jar = jar
		if code, text := read(url.Values{"token": {token}}, base+"s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/signin"); !strings.Contains(text, c.sees) || strings.Contains(text, c.not) {
			t.Errorf("token %s: %d %s", token, code, text)
		}
	}
	var sent []*http.Cookie // to the same host at another port, by a browser that is signed in
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Cookies()...) }))
	defer evil.Close()
	if code, text := read(url.Values{"token": {"00000000000000000000"}}, base+"s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/signin"); !strings.Contains(text, "roots") {
		t.Errorf("signing in: %d %s", code, text)
	}
	for _, path := range []string{"/", "/evo/", "/evo/s/", "/evo/s/ABCDEFGHIJKLMNOPQRSTUVWXY2/"} {
		read(nil, evil.URL+path)
	}
	if len(sent) > 0 {
		t.Errorf("the browser sent to another port %v", sent)
	}
	browser.Jar = nil
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	must.OK(t, os.Chmod(file, 0o644))
	if _, err := listenWeb(cfg, nil, server, certificates(config.Config{Web: cfg}), log); err == nil || !strings.Contains(err.Error(), "web.tokens: "+file+": others may read it") {
		t.Errorf("a file that others read: %v", err)
	}
	cfg.Tokens = ""
	server.Reading = func() api.Reading { return api.Anybody }
	if side, err = listenWeb(cfg, nil, server, certificates(config.Config{Web: cfg}), log); err != nil {
		t.Fatal(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	go func() { done <- side.Serve(ctx) }()
	if code, text := read(nil, "http://"+side.Addr().String()+"/evo/"); code != http.StatusOK || !strings.Contains(text, "roots") {
		t.Errorf("everybody may read: %d %s", code, text)
	}
}

// TestPageByTLS checks that the page has its own certificate, also after a renewal, and that no
// address that others reach works without one if users sign in.
func TestPageByTLS(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Web{Listen: "127.0.0.1:0", Base: "/", Tokens: dir + "/tokens", Certificate: dir + "/cert", Key: dir + "/key"}
	must.OK(t, os.WriteFile(cfg.Tokens, []byte("root 00000000000000000000\n"), 0o600))
	log := logrus.New()
	log.SetOutput(io.Discard)
	server := &api.Server{Backend: two{}, Log: log}
	if _, err := listenWeb(cfg, nil, server, certificates(config.Config{Web: cfg}), log); err == nil || !strings.Contains(err.Error(), "web.listen: the certificate:") {
		t.Errorf("without the files: %v", err)
	}
	certstest.Write(t, dir, "127.0.0.1", 1, time.Now().Add(time.Hour))
	side, err := listenWeb(cfg, nil, server, certificates(config.Config{Web: cfg}), log)
	must.OK(t, err)
	go side.Serve(t.Context())
	browser := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for serial := range int64(3) {
		certstest.Write(t, dir, "127.0.0.1", 10+serial, time.Now().Add(time.Hour))
		if serial == 2 { // not whole yet
			must.OK(t, os.Truncate(cfg.Certificate, 10))
		}
		certstest.Await(t, side.Addr().String(), min(10+serial, 11))
		res, err := browser.PostForm("https://"+side.Addr().String()+"/s/ABCDEFGHIJKLMNOPQRSTUVWXYZ/signin", url.Values{"token": {"00000000000000000000"}})
		must.OK(t, err)
		res.Body.Close()
		if got := res.TLS.PeerCertificates[0].SerialNumber.Int64(); got != min(10+serial, 11) {
			t.Errorf("the certificate is number %d", got)
		}
		signedIn := res
		if res.Request.Response != nil {
			signedIn = res.Request.Response // before the redirect
		}
		if c := signedIn.Cookies(); len(c) != 1 || !c[0].Secure || c[0].Name != "__Secure-evoslurm" {
			t.Errorf("the cookie is %v", c)
		}
	}
	open, err := net.Listen("tcp", ":0")
	must.OK(t, err)
	defer open.Close()
	cfg.Certificate = ""
	if _, err := listenWeb(cfg, []net.Listener{open}, server, nil, log); err == nil || !strings.Contains(err.Error(), "reached from other machines") {
		t.Errorf("without TLS, for everybody: %v", err)
	}
}

// TestMask checks that with --mask the record of a user's job has no name, whatever the file of the configuration says.
func TestMask(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "evoslurm.yaml")
	must.OK(t, os.WriteFile(file, []byte("mode: observe\nobserve: {mask: false, dir: "+dir+"/observed}\nread: own\noperators: {users: [alice]}\n"), 0o600))
	for _, masked := range []bool{false, true} {
		cmd, begun := command(), time.Now()
		must.OK(t, cmd.ParseFlags([]string{"--config=" + file, "--mask=" + strconv.FormatBool(masked)}))
		cfg, _, err := config.Load(cmd.Flags())
		must.OK(t, err)
		w, err := observed.NewWatcher(cfg, "v1", begun)
		must.OK(t, err)
		job := slurmctl.Job{ID: 7, ArrayJobID: 7, ArrayTasks: 1, Name: "job of alice", User: "alice", Account: "alice", Partition: "main", State: slurmctl.Pending, NumNodes: 1}
		w.See(begun, 0, msg.Observation{Nodes: []slurmctl.Node{{Name: "n1"}}, Jobs: []slurmctl.Job{job}, Reservations: []slurmctl.Reservation{{Name: "alice", Users: []string{"alice"}}}})
		must.OK(t, w.Close())
		days, err := observed.Days(cfg.ObserveDir())
		if err != nil || len(days) != 1 {
			t.Fatal(days, err)
		}
		out, err := exec.CommandContext(t.Context(), "zcat", days[0].Files[len(days[0].Files)-1]).Output()
		if named := strings.Contains(string(out), "alice"); err != nil || named == masked || !strings.Contains(string(out), `"job"`) {
			t.Errorf("masked %v: %v\n%s", masked, err, out)
		}
	}
}
