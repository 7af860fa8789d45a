package main

import (
	"context"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/show/web"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestWeb checks that only the printed address opens the page, and that another port of the machine
// gets no cookie.
func TestWeb(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	asked := api.Errorf(api.ErrNotFound, "the reader was asked")
	page := web.Page{Base: web.NewPath("/node/x"), Reader: func(*http.Request) (web.Reader, error) { return nil, asked }}
	printed, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- serveWeb(ctx, l, page, func(address string) { printed <- address }) }()
	var text string
	select {
	case text = <-printed:
	case err := <-done:
		t.Fatalf("it printed no address: %v", err)
	}
	address, err := url.Parse(text)
	if err != nil || !strings.HasPrefix(address.Path, "/node/x/s/") {
		t.Fatalf("%v, %v", address, err)
	}
	jar, err := cookiejar.New(nil)
	must.OK(t, err)
	browser := &http.Client{Jar: jar}
	get := func(at string) int {
		t.Helper()
		res, err := browser.Get(at)
		must.OK(t, err)
		res.Body.Close()
		return res.StatusCode
	}
	folder := "http://" + address.Host + address.Path
	if got := get(folder); got != http.StatusForbidden {
		t.Errorf("without the secret: %d", got)
	}
	for _, at := range []string{address.String(), folder, folder + "job?id=12"} {
		if got := get(at); got != http.StatusNotFound { // by the reader
			t.Errorf("%s: %d", at, got)
		}
	}
	if got := get("http://" + address.Host + "/node/x/"); got != http.StatusForbidden {
		t.Errorf("beside the path: %d", got)
	}
	var sent []*http.Cookie
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = append(sent, r.Cookies()...) }))
	defer evil.Close()
	get(evil.URL + "/node/x/s/")
	if len(sent) > 0 {
		t.Errorf("the browser sent to another port %v", sent)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
