package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tokenOf signs claims as slurmctld does.
func tokenOf(key []byte, head, claims string) string {
	public := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	return public + "." + base64.RawURLEncoding.EncodeToString(mac(key, public))
}

const head = `{"alg":"HS256","typ":"JWT"}`

func claimsOf(name string, issued, expires time.Time) string {
	return fmt.Sprintf(`{"exp":%d,"iat":%d,"sun":%q}`, expires.Unix(), issued.Unix(), name)
}

// keyFile writes a key.
func keyFile(t *testing.T, key []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwt_hs256.key")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// keys returns the key that a server reads from a file.
func keys(t *testing.T, key []byte) *Keys {
	return &Keys{File: keyFile(t, key), SlurmUser: func() uint32 { return 0 }}
}

// bearing returns a client that has a token.
func bearing(t *testing.T, address, token string) *Client {
	c := client(t, address)
	c.Token = func(context.Context) (string, error) { return token, nil }
	return c
}

// TestSlurmsToken checks that a token that "scontrol token" of Slurm 22.05.8 printed is signed as the sidecar thinks.
func TestSlurmsToken(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3OTU2NjEyMzUsImlhdCI6MTc5NTY2MTE3NSwic3VuIjoiYWxpY2UifQ.r4hs11fp8HVHNwfCbE5ON11sUqlhIEXzGxhfNkMisYY"
	key, err := hex.DecodeString("18c7b38c8b5ad38120320e8cc333721c51e23d6468f85b245a80ed54bc4397b5")
	if err != nil {
		t.Fatal(err)
	}
	public, signature, err := splitToken(token)
	if err != nil || !bytes.Equal(signature, mac(key, public)) {
		t.Errorf("another signature (%v)", err)
	}
	if c, err := readClaims(public); err != nil || c != (claims{1795661235, 1795661175, "alice"}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestToken checks that both sides prove by a token who they are, that the token's signature does not travel, and what is refused, by which name.
func TestToken(t *testing.T) {
	key, now := bytes.Repeat([]byte("k"), 32), time.Now()
	b := ready(0)
	r := serve(t, b, func(s *Server) {
		s.Tokens, s.Reading = keys(t, key), func() Reading { return OwnJobs }
	})
	good := tokenOf(key, head, claimsOf("root", now, now.Add(time.Hour)))
	if a, err := bearing(t, r.tcp, good).Next(t.Context(), 12, NextRequest{From: 1}); err != nil || a.Step != 2 {
		t.Errorf("with a token: %+v, %v", a, err)
	}
	if _, err := bearing(t, r.tcp, tokenOf(key, head, claimsOf("nobody", now, now.Add(time.Hour)))).Job(t.Context(), 12); err == nil || !strings.Contains(err.Error(), "not an evolving job") {
		t.Errorf("another user's token: %v", err)
	}
	for name, c := range map[string]struct{ token, want string }{
		"expired":         {tokenOf(key, head, claimsOf("root", now.Add(-time.Hour), now.Add(-time.Second))), "the token of root expired at"},
		"of the future":   {tokenOf(key, head, claimsOf("root", now.Add(time.Hour), now.Add(2*time.Hour))), "issued in the future: set the clocks"},
		"of nobody known": {tokenOf(key, head, claimsOf("no-such-user", now, now.Add(time.Hour))), `user "no-such-user" is not known`},
		"without a user":  {tokenOf(key, head, `{"exp":99999999999}`), "names no user"},
		"without an end":  {tokenOf(key, head, `{"sun":"root"}`), "never expires"},
		"unsigned":        {tokenOf(key, `{"alg":"none"}`, claimsOf("root", now, now.Add(time.Hour))), `signed by "none", and only HS256`},
		"of RS256":        {tokenOf(key, `{"alg":"RS256"}`, claimsOf("root", now, now.Add(time.Hour))), `signed by "RS256", and only HS256`},
		"malformed":       {tokenOf(key, head, `{`), "malformed"},
		"huge":            {tokenOf(key, head, claimsOf(strings.Repeat("x", 5000), now, now.Add(time.Hour))), "not a JSON Web Token"},
		"no token":        {"secret", "not a JSON Web Token"},
	} {
		if _, err := bearing(t, r.tcp, c.token).Job(t.Context(), 12); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}

	other := tokenOf(bytes.Repeat([]byte("l"), 32), head, claimsOf("root", now, now.Add(time.Hour)))
	if err := notAnswered(t, bearing(t, r.tcp, other)); !strings.Contains(err.Error(), "not this cluster's") || !strings.Contains(err.Error(), "not of this cluster's key") {
		t.Errorf("of another cluster: %v", err)
	}

	public, signature, err := splitToken(good)
	if err != nil {
		t.Fatal(err)
	}
	const uri, body = "/v1/jobs/12/next", `{"from":1}`
	at := func(made time.Time, server, body string) string {
		return tokenScheme + " " + tokenCredential(public, signature, made, newTarget("", server, http.MethodPost, uri, []byte(body)))
	}
	once := at(now, r.tcp, body)
	if strings.Contains(once, good[strings.LastIndexByte(good, '.')+1:]) {
		t.Error("the token's signature is sent")
	}
	for _, c := range []struct{ name, authorization, want string }{
		{"once", once, `"ready":true`}, {"twice", once, "has been used before"}, {"with its time in another form", strings.Replace(once, ":", ":0", 1), "was not made for"},
		{"for another server", at(now, "192.0.2.1:341", body), "was not made for"}, {"for another body", at(now, r.tcp, `{"from":2}`), "was not made for"},
		{"old", at(now.Add(-time.Hour), r.tcp, body), "at most 1m0s is accepted"}, {"early", at(now.Add(time.Hour), r.tcp, body), "at most 1m0s is accepted"},
		{"as it is", "Bearer " + good, "a bearer token is not accepted"}, {"in parts", tokenScheme + " a:b:c", "not a credential by token"},
	} {
		if _, text := send(t, http.DefaultClient, http.MethodPost, "http://"+r.tcp+uri, c.authorization, body); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s; want %q", c.name, text, c.want)
		}
	}
}

// TestCheapChecksFirst checks that an old request by token is refused before the key is read, and that an address has a bounded number of
// credentials that are being checked.
func TestCheapChecksFirst(t *testing.T) {
	key, now := bytes.Repeat([]byte("k"), 32), time.Now()
	r := serve(t, ready(0), func(s *Server) { s.Tokens, s.Reading = keys(t, key), func() Reading { return OwnJobs } })
	public, signature, err := splitToken(tokenOf(key, head, claimsOf("root", now, now.Add(time.Hour))))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(made time.Time, want string) {
		t.Helper()
		authorization := tokenScheme + " " + tokenCredential(public, signature, made, newTarget("", r.tcp, http.MethodGet, "/v1/status", nil))
		if _, text := send(t, http.DefaultClient, http.MethodGet, "http://"+r.tcp+"/v1/status", authorization, ""); !strings.Contains(text, want) {
			t.Errorf("%s; want %q", text, want)
		}
	}
	leave, _ := r.share().decoding.take(holder{address: "127.0.0.1"}, itsDecoding, false)
	refused(now, "64 credentials from 127.0.0.1 are being checked")
	leave()
	if err := os.Remove(r.Tokens.File); err != nil {
		t.Fatal(err)
	}
	refused(now, "cannot read the key")
	refused(now.Add(-time.Hour), "at most 1m0s is accepted")
}

// TestTokenUnproved checks that no server is believed that does not know the token's signature.
func TestTokenUnproved(t *testing.T) {
	now := time.Now()
	good := tokenOf(make([]byte, 32), head, claimsOf("root", now, now.Add(time.Hour)))
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(answerHeader, strings.Repeat("0", 64))
		io.WriteString(w, `{"ready": true, "step": 2}`)
	}))
	defer thief.Close()
	if err := notAnswered(t, bearing(t, addressOf(thief), good)); !strings.Contains(err.Error(), "did not prove that it is the sidecar") {
		t.Error(err)
	}
	if err := notAnswered(t, bearing(t, serve(t, newBackend(0), nil).tcp, good)); !strings.Contains(err.Error(), "accepts no tokens") {
		t.Errorf("a sidecar without jwt.key: %v", err)
	}
}

// TestKeys checks that a key that others can read or replace, or that is too short, is refused, and that a new one counts, even with the times
// and the size of the old one.
func TestKeys(t *testing.T) {
	const slurm, stranger = 64030, 1000
	k := keys(t, bytes.Repeat([]byte("k"), 32))
	k.SlurmUser = func() uint32 { return slurm }
	for _, c := range []struct {
		key, folder       os.FileMode
		size, owner, over int
		want              string
	}{
		{0o600, 0o755, 32, 0, 0, ""}, {0o640, 0o700, 40, slurm, slurm, ""}, {0o600, 0o755, 31, 0, 0, "31 bytes: want 32"}, {0o604, 0o755, 32, 0, 0, "others may read"},
		{0o660, 0o755, 32, 0, 0, "may be written by others"}, {0o600, 0o777, 32, 0, 0, "may be written by others"},
		{0o600, 0o755, 32, stranger, 0, "belongs to user 1000"}, {0o600, 0o755, 32, 0, stranger, "belongs to user 1000"},
	} {
		for _, fill := range []string{"a", "b"} {
			dir := filepath.Dir(k.File)
			if err := errors.Join(os.WriteFile(k.File, bytes.Repeat([]byte(fill), c.size), 0o600), os.Chtimes(k.File, time.Unix(1, 0), time.Unix(1, 0)),
				os.Chmod(k.File, c.key), os.Chown(k.File, c.owner, 0), os.Chmod(dir, c.folder), os.Chown(dir, c.over, 0)); err != nil {
				t.Fatal(err)
			}
			if key, err := k.Key(); c.want == "" && string(key) != strings.Repeat(fill, c.size) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%+v: %q, %v", c, key, err)
			}
		}
	}
}

// TestTokens checks that slurmctld is asked only where there is no token that is good for a while.
func TestTokens(t *testing.T) {
	made, key := 0, make([]byte, 32)
	token := func(long time.Duration) string {
		return tokenOf(key, head, claimsOf("root", time.Now(), time.Now().Add(long)))
	}
	life := time.Second
	tokens := &Tokens{Given: token(time.Second), Make: func(context.Context) (string, error) { made++; return token(life), nil }}
	for i, c := range []struct {
		life time.Duration
		made int
	}{{time.Second, 1}, {time.Hour, 2}, {time.Hour, 2}} {
		life = c.life
		if _, err := tokens.Get(t.Context()); err != nil || made != c.made {
			t.Errorf("%d: %d were made (%v), want %d", i, made, err, c.made)
		}
	}
	given := &Tokens{Given: token(time.Hour), Make: tokens.Make}
	if got, err := given.Get(t.Context()); err != nil || got != given.Given || made != 2 {
		t.Errorf("SLURM_JWT is not used (%v)", err)
	}
	for given, want := range map[string]bool{token(-time.Second): true, "": false} {
		none := &Tokens{Given: given, Make: func(context.Context) (string, error) { return "", errors.New("disabled") }}
		if _, err := none.Get(t.Context()); err == nil || strings.Contains(err.Error(), "SLURM_JWT expires at") != want || !strings.Contains(err.Error(), "disabled") {
			t.Errorf("without another token than %q: %v", given, err)
		}
	}
}
