package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
)

// FuzzRequest checks that for any path, header, and body the answer is JSON with a fitting status,
// that only steps of the job reach the backend, and that every log entry stays one line.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, authorization, body string }{
		{"GET", "/v1/status", "", ""},
		{"GET", "/v1/jobs?all=1", "", ""},
		{"GET", "/v1/jobs/12", "", ""},
		{"GET", "/v1/jobs/-1", "", ""},
		{"GET", "/v1/jobs/12/allocation", "", ""},
		{"POST", "/v1/jobs/12/next", "", `{"from": 1}`},
		{"POST", "/v1/jobs/12/next", "", `{"from": 1, "release": ["n1", "n[2-4]"]}`},
		{"POST", "/v1/jobs/12/next", "", `{"from": 99999999999999999999}`},
		{"POST", "/v1/jobs/12/next", "", `{"from": 1}{"from": 2}`},
		{"POST", "/v1/jobs/12/next", "", "[[[[[["},
		{"POST", "/v1/jobs/12/next", "MUNGE MUNGE:AwQFAAB:", `{"from": 1}`},
		{"GET", "/v1/\x1b[2J\nlevel=error", "MUNGE \x00", ""},
		{"POST", "/v1/strategies", "", `{"name": "../../bin/sh"}`},
		{"POST", "/v1/settings", "", `{"set": {"max_delay": "1h"}, "add": {"allow.users": ["\u0000"]}}`},
		{"GET", "/v1/access?account=%00&partition=a,b", "", ""},
	} {
		f.Add(seed.authorization == "", seed.method, seed.path, seed.authorization, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, local bool, method, path, authorization string, body []byte) {
		target, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(target.Path, "/v1/") {
			return // net/http's own to answer
		}
		backend := newBackend(uint32(os.Geteuid()))
		close(backend.ready)
		var log bytes.Buffer
		logger := logrus.New()
		logger.SetOutput(&log)
		// without unmunge no credential is valid, and the fuzzer starts no process
		s := &Server{Backend: &setter{fakeBackend: backend}, Log: logger, Munge: Munge{Dir: "/nonexistent"}, Reading: anybody}
		r := &http.Request{Method: method, URL: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Host: "x", RequestURI: path, RemoteAddr: "@"}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if local {
			r = r.WithContext(context.WithValue(t.Context(), peerKey{}, peer{uid: uint32(os.Geteuid())}))
		}
		w := deadlines{httptest.NewRecorder()}
		s.routes(t.Context()).ServeHTTP(w, r)
		if w.Code/100 != 3 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("status %d, and %q is no JSON", w.Code, w.Body)
		}
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		for _, req := range backend.posted {
			if req.From < 1 || !local {
				t.Fatalf("the backend was given %+v", req)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines > 1 || strings.ContainsAny(log.String(), "\x1b\r\x00") {
			t.Fatalf("the log has %d lines: %q", lines, log.String())
		}
	})
}

// deadlines is a recorder that takes deadlines, as a connection does.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error { return nil }

// FuzzParseCredential covers what the caller writes into unmunge's output.
func FuzzParseCredential(f *testing.F) {
	const head = "ENCODE_TIME: 10\nDECODE_TIME: 12\nUID: 7\nGID: 8\n"
	for _, seed := range []string{"", "\n\n", head + "LENGTH: 6\n\na\n\nb: c", head + "LENGTH: 9\n\nx", head + "UID: 0\nLENGTH: 1\n\nx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		c, err := parseCredential(out)
		if err == nil && !strings.HasSuffix(out[:strings.Index(out, "\n\n")+2+len(c.Payload)], "\n\n"+c.Payload) {
			t.Fatalf("%q gave %+v", out, c)
		}
	})
}
