package api

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/strict"
)

// Where there is no MUNGE, a caller proves its identity by a JSON Web Token of slurmctld ("scontrol token"). A token is good for
// each of its readers, so it does not travel: the caller sends its header and claims, and proves by an HMAC over the request
// that it has the token's signature. The sidecar knows the site's key, so it knows the signature, and proves its answer in the
// same way. So a token of HS256 is as a credential of MUNGE: for one request to one server. Other algorithms are refused.
const (
	tokenScheme = "SlurmToken"
	tokenUse    = "evoslurm-token-1" // first line of what a proof is made of

	leastKey     = 32 // bytes, as Slurm wants
	mostKey      = 64 << 10
	tokenReserve = time.Minute // a token that expires sooner is not used for a new request
)

// Keys has the key of the site's tokens, AuthAltParameters=jwt_key in slurm.conf.
type Keys struct {
	File string
	// SlurmUser returns who may own the file besides root and this process's user, or 0 if that is not known.
	SlurmUser func() uint32
}

// Key reads the key, each time: it may be renewed, and its times need not show that.
func (k *Keys) Key() ([]byte, error) {
	st, err := os.Stat(k.File)
	if err != nil {
		return nil, err
	}
	switch {
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", k.File)
	case st.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("others may read %s (mode %04o): chmod 600, and make a new key, since its readers can be any user", k.File, st.Mode().Perm())
	case st.Size() < leastKey || st.Size() > mostKey:
		return nil, fmt.Errorf("%s has %d bytes: want %d or more, as Slurm does", k.File, st.Size(), leastKey)
	}
	if err := strict.Path(k.File, k.SlurmUser()); err != nil {
		return nil, err
	}
	return os.ReadFile(k.File)
}

// claims holds what slurmctld writes into a token.
type claims struct {
	Expires int64  `json:"exp"`
	Issued  int64  `json:"iat"`
	User    string `json:"sun"`
}

// splitToken splits a token into what may be sent, and its signature.
func splitToken(token string) (public string, signature []byte, err error) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 || strings.Count(token, ".") != 2 || len(token) > maxCredential/2 {
		return "", nil, errors.New("not a JSON Web Token of Slurm")
	}
	signature, err = base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil || len(signature) != sha256.Size {
		return "", nil, errors.New("the token's signature is not of HS256: want one of \"scontrol token\"")
	}
	return token[:i], signature, nil
}

// readClaims reads the header and claims of a token.
func readClaims(public string) (c claims, err error) {
	head, body, _ := strings.Cut(public, ".")
	var h struct {
		Algorithm string `json:"alg"`
	}
	for text, into := range map[string]any{head: &h, body: &c} {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(data, into) != nil {
			return c, errors.New("the token is malformed")
		}
	}
	switch {
	case h.Algorithm != "HS256":
		return c, fmt.Errorf("the token is signed by %q, and only HS256 is accepted", h.Algorithm)
	case c.User == "":
		return c, errors.New("the token names no user (sun)")
	case c.Expires == 0:
		return c, errors.New("the token never expires (exp): make another with \"scontrol token\"")
	}
	return c, nil
}

// TokenExpires returns when a token expires, by its own words.
func TokenExpires(token string) (time.Time, error) {
	public, _, err := splitToken(token)
	if err != nil {
		return time.Time{}, err
	}
	c, err := readClaims(public)
	return time.Unix(c.Expires, 0), err
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// tokenProof proves that a caller has a signature, for one request at one time. It covers the time as it is written: in
// another form, the credential would count once more.
func tokenProof(signature []byte, at, nonce string, t target) string {
	return hex.EncodeToString(mac(signature, strings.Join([]string{tokenUse, at, nonce, t.request()}, "\n")))
}

// tokenCredential returns what proves a request.
func tokenCredential(public string, signature []byte, now time.Time, t target) string {
	at, nonce := strconv.FormatInt(now.Unix(), 10), rand.Text()
	return strings.Join([]string{public, at, nonce, tokenProof(signature, at, nonce, t)}, ":")
}

// openToken checks a credential by token, and returns its user and the key that proves the answer. Nothing of a token is said to who has
// not proved to have it.
func (a *authenticator) openToken(r *http.Request, credential string, body []byte) (uid uint32, err error) {
	if a.tokens == nil {
		return 0, Errorf(ErrDenied, "this sidecar accepts no tokens of Slurm: use MUNGE (auth: munge), or set jwt.key for the sidecar")
	}
	parts := strings.Split(credential, ":")
	if !isToken(credential) {
		return 0, Errorf(ErrDenied, "not a credential by token")
	}
	at, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0, Errorf(ErrDenied, "not a credential by token")
	}
	if err := a.fresh(time.Since(time.Unix(at, 0))); err != nil {
		return 0, err
	}
	targets, err := a.targets(r, body)
	if err != nil {
		return 0, err
	}
	key, err := a.tokens.Key()
	if err != nil {
		return 0, Errorf(ErrUnavailable, "the sidecar cannot read the key of Slurm's tokens: %v", err)
	}
	signature, proved := mac(key, parts[0]), false
	for _, t := range targets {
		if hmac.Equal([]byte(parts[3]), []byte(tokenProof(signature, parts[1], parts[2], t))) {
			proved = true
			if sl, ok := r.Context().Value(sealKey{}).(*seal); ok {
				*sl = seal{target: t, credential: credential, key: signature}
			}
		}
	}
	if !proved {
		return 0, Errorf(ErrDenied, "the token is not of this cluster's key, or the request was not made for %s on cluster %q (behind a forwarder, set listen.forwarded)", targets[0].server, targets[0].cluster)
	}
	return a.admitToken(parts[0], time.Now())
}

// fresh checks the age of a request by token.
func (a *authenticator) fresh(age time.Duration) error {
	if age > a.maxAge || age < -a.maxAge {
		return Errorf(ErrDenied, "the request by token is %v old, at most %v is accepted (are the clocks of the two machines alike?)", age.Round(time.Second), a.maxAge)
	}
	if since := a.since.Load(); since != nil && age+time.Second > time.Since(*since) {
		return Errorf(ErrUnavailable, "the request was made before the sidecar began to listen here: make another")
	}
	return nil
}

// admitToken checks the times and the user of a token that its owner has sent.
func (a *authenticator) admitToken(public string, now time.Time) (uid uint32, err error) {
	c, err := readClaims(public)
	if err != nil {
		return 0, Errorf(ErrDenied, "%v", err)
	}
	switch {
	case !now.Before(time.Unix(c.Expires, 0)):
		return 0, Errorf(ErrDenied, "the token of %s expired at %s: unset SLURM_JWT, or make another with \"scontrol token\"", c.User, time.Unix(c.Expires, 0).UTC().Format(time.RFC3339))
	case time.Unix(c.Issued, 0).Sub(now) > a.maxAge:
		return 0, Errorf(ErrDenied, "the token of %s was issued in the future: set the clocks of slurmctld and of the sidecar", c.User)
	}
	u, err := user.Lookup(c.User)
	if err != nil {
		return 0, Errorf(ErrDenied, "the token's user %q is not known on the sidecar's host", c.User)
	}
	n, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(n), err
}

// byToken makes the credential of a request from the caller's token.
func (c *Client) byToken(ctx context.Context, t target) (credential string, signature []byte, err error) {
	token, err := c.Token(ctx)
	if err != nil {
		return "", nil, awayError{fmt.Errorf("a token of Slurm, to prove who is calling: %w", err)}
	}
	public, signature, err := splitToken(token)
	if err != nil {
		return "", nil, err
	}
	return tokenCredential(public, signature, time.Now(), t), signature, nil
}

// verifyToken reports whether an answer is of someone who knows the caller's token: the sidecar.
func (c *Client) verifyToken(s sent, res *http.Response, body []byte) error {
	proof, err := hex.DecodeString(res.Header.Get(answerHeader))
	if err != nil || !hmac.Equal(proof, mac(s.key, s.target.answer(s.credential, res.StatusCode, body))) {
		return impostor{"the server did not prove that it is the sidecar, or SLURM_JWT is of another cluster (then unset it), or the sidecar's jwt.key is not this cluster's" + c.said(res, body)}
	}
	return nil
}

// sent holds what a client keeps of a request, to check the answer.
type sent struct {
	target     target
	credential string
	key        []byte // of a token; nil: MUNGE
}

// Tokens keeps a token until it is about to expire.
type Tokens struct {
	Given string // SLURM_JWT, which is used while it is good
	Make  func(ctx context.Context) (string, error)

	mu    sync.Mutex
	token string
}

// Get returns a token that is good for a while.
func (t *Tokens) Get(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	past := "" // what is wrong with the one given
	for _, token := range []string{t.token, t.Given} {
		ends, err := TokenExpires(cmp.Or(token, "none"))
		if err == nil && time.Until(ends) > tokenReserve {
			return token, nil
		}
		if err == nil && token == t.Given {
			past = fmt.Sprintf("SLURM_JWT expires at %s, and slurmctld makes no other: ", ends.UTC().Format(time.RFC3339))
		}
	}
	var err error
	if t.token, err = t.Make(ctx); err != nil {
		err = fmt.Errorf("%s%w", past, err)
	}
	return t.token, err
}
