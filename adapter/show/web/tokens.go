package web

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Tokens authenticates users if neither a Unix socket nor MUNGE does: a file of lines "USER TOKEN",
// readable only by the sidecar's user. A user who has signed in with a token has a session. The
// file is reread at each request: removing a token's line also ends the sessions that began with
// it.
type Tokens struct {
	File string // "": there are none

	mu    sync.Mutex
	read  fs.FileInfo // of the file as last read
	users map[[sha256.Size]byte]string

	sessions sessions
}

const (
	shortestToken = 20      // characters
	mostTokens    = 1 << 20 // bytes of the file
)

// Check returns what is wrong with the file.
func (t *Tokens) Check() error {
	if t.File == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return err
	}
	for _, name := range t.users {
		if _, err := uidOf(name); err != nil {
			return fmt.Errorf("%s: %w", t.File, err)
		}
	}
	return nil
}

// refresh rereads the file if it has changed.
func (t *Tokens) refresh() error {
	f, err := os.Open(t.File)
	if err != nil {
		t.read, t.users = nil, nil
		return fmt.Errorf("the file of tokens: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && t.read != nil && os.SameFile(st, t.read) && st.ModTime().Equal(t.read.ModTime()) && st.Size() == t.read.Size() && st.Mode() == t.read.Mode() {
		return nil
	}
	t.read, t.users = nil, nil
	if err == nil {
		err = ours(st)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostTokens))
	if err != nil {
		return err
	}
	users, err := parseTokens(text)
	if err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	t.read, t.users = st, users
	return nil
}

// ours reports whether only this user can read a file with secrets.
func ours(st fs.FileInfo) error {
	if !st.Mode().IsRegular() {
		return fmt.Errorf("it is no file")
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others may read it (mode %04o): chmod 600, and replace the tokens in it", st.Mode().Perm())
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to uid %d: want root or the sidecar's user", owner.Uid)
	}
	return nil
}

func parseTokens(text []byte) (map[[sha256.Size]byte]string, error) {
	users := map[[sha256.Size]byte]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: want USER TOKEN", n)
		}
		if len(fields[1]) < shortestToken {
			return nil, fmt.Errorf("line %d: the token has %d characters, want %d or more, drawn by chance (openssl rand -hex 20)", n, len(fields[1]), shortestToken)
		}
		sum := sha256.Sum256([]byte(fields[1]))
		if _, twice := users[sum]; twice {
			return nil, fmt.Errorf("line %d: this token is there twice", n)
		}
		users[sum] = fields[0]
	}
	return users, lines.Err()
}

func uidOf(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("a token stands for %s, whom this machine does not know: %w", strconv.Quote(name), err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(uid), err
}

// of returns the user of a token.
func (t *Tokens) of(token string) (name string, uid uint32, err error) {
	if t.File == "" {
		return "", 0, api.Errorf(api.ErrDenied, "cannot sign in here: the configuration has no web.tokens")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return "", 0, api.Errorf(api.ErrUnavailable, "cannot sign in at present: %v", err)
	}
	return t.standsFor(sha256.Sum256([]byte(token)))
}

// standsFor returns the user of the token with this hash. The caller holds the lock and has read
// the file.
func (t *Tokens) standsFor(sum [sha256.Size]byte) (name string, uid uint32, err error) {
	name, ok := t.users[sum]
	if !ok {
		return "", 0, api.Errorf(api.ErrDenied, "this token is not known here, or is no more")
	}
	if uid, err = uidOf(name); err != nil {
		return "", 0, api.Errorf(api.ErrDenied, "%v", err)
	}
	return name, uid, nil
}

// User returns the sender of a request; uid is nil for one who has not signed in.
func (t *Tokens) User(r *http.Request) (name string, uid *uint32, err error) {
	handle := handleOf(r)
	if handle == "" {
		return "", nil, nil
	}
	s, ok := t.sessions.of(r, handle)
	if !ok {
		return "", nil, api.Errorf(api.ErrDenied, "this session is over: sign in")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return "", nil, api.Errorf(api.ErrUnavailable, "cannot sign in at present: %v", err)
	}
	name, id, err := t.standsFor(s.token)
	return name, &id, err
}

// signIn and signOut handle the forms of these names.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.refuse(w, r, frame{}, api.Errorf(api.ErrInvalid, "the form: %v", err))
		return
	}
	token, to := strings.TrimSpace(r.PostForm.Get("token")), wayBack(r.PostForm.Get("to"))
	name, _, err := p.Tokens.of(token)
	if handle := handleOf(r); err == nil && handle == "" {
		err = api.Errorf(api.ErrDenied, "this form is of an older page: sign in again")
	}
	what := "signed in as " + name
	if err != nil {
		what = "not signed in: " + err.Error()
	}
	if p.Told != nil {
		p.Told(r, what)
	}
	if err != nil {
		p.refuse(w, r, frame{To: to}, err)
		return
	}
	setCookie(w, r, p.Tokens.sessions.begin(handleOf(r), name, sha256.Sum256([]byte(token))))
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	to := "./"
	if handle := handleOf(r); handle != "" {
		if _, ok := p.Tokens.sessions.of(r, handle); ok { // a caller who only knows the address cannot end a session
			p.Tokens.sessions.end(handle)
		}
		setCookie(w, r, "")
		to = "../../"
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// wayBack returns the page that the user wanted, if it is one of ours.
func wayBack(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !slices.Contains([]string{"./", "job", "strategies"}, u.Path) {
		return "./"
	}
	return u.String()
}
