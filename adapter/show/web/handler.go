package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/show/uplot"
)

// Reader provides what one caller may read.
type Reader interface {
	Status(ctx context.Context) (api.Status, error)
	Jobs(ctx context.Context, all bool) ([]api.Job, error)
	Job(ctx context.Context, id uint32) (api.Job, error)
	Cluster(ctx context.Context) (api.Cluster, error)
	Events(ctx context.Context, q api.EventQuery) ([]api.Event, error)
	History(ctx context.Context, q api.HistoryQuery) (api.History, error)
}

// Page serves the page.
type Page struct {
	// Reader returns what the sender of a request may read. Errors are shown: ErrDenied for a
	// caller who has not signed in.
	Reader func(*http.Request) (Reader, error)
	// Base is the path of the page in requests: "/" or "/web/".
	Base string
	// Tokens lets readers sign in; nil if they need not.
	Tokens *Tokens
	// Clusters holds entries of web.clusters: the pages of other clusters.
	Clusters []string
	// Told, if not nil, is called with successful and failed sign-ins.
	Told func(r *http.Request, what string)

	forms   *forms
	drawing chan struct{} // one slot for each page that is being made
	made    *kept
}

// mostAtOnce is how many pages are made at the same time; further readers wait their turn.
const mostAtOnce = 4

// visit is one request for a page.
type visit struct {
	Reader
	*http.Request

	now time.Time // by the sidecar's clock
}

// readTimeout bounds the queries of a page.
const readTimeout = 10 * time.Second

// policy forbids all that the page does not need: scripts, styles and requests but its own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed static templates
var files embed.FS

// assets are the static files by name, with their sums.
var assets = sync.OnceValue(readAssets)

type asset struct {
	data []byte
	sum  string
	kind string
}

func readAssets() map[string]asset {
	all := map[string]asset{}
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		all[path.Base(name)] = assetOf(name, data)
		return err
	})
	if err != nil {
		panic(err) // it is in the executable
	}
	// The only copy, which evosim's reports also embed.
	all["uplot.js"] = assetOf("uplot.js", []byte("/*\n"+uplot.Licence+"*/\n"+uplot.Script))
	all["uplot.css"] = assetOf("uplot.css", []byte(uplot.Style))
	return all
}

func assetOf(name string, data []byte) asset {
	sum := sha256.Sum256(data)
	return asset{data, hex.EncodeToString(sum[:6]), mime.TypeByExtension(path.Ext(name))}
}

// Handler returns the page below Base.
func (p *Page) Handler() http.Handler {
	base := rooted(p.Base)
	p.forms, p.drawing, p.made = newForms(), make(chan struct{}, mostAtOnce), &kept{all: map[string]*keptPage{}, clock: time.Now}
	mux := http.NewServeMux()
	mux.HandleFunc(base+"{$}", looked(p.show("gantt", readTimeout, p.gantt)))
	mux.HandleFunc(base+"job", looked(p.show("job", readTimeout, p.job)))
	mux.HandleFunc(base+"strategies", looked(p.show("strategies", readTimeout, p.strategies)))
	mux.HandleFunc(base+"history", looked(p.show("history", readTimeout, p.history)))
	mux.HandleFunc(base+"overview", looked(p.show("overview", readTimeout, p.overview)))
	mux.HandleFunc(base+"try", acted(p.show("strategies", actTimeout, p.try)))
	mux.HandleFunc(base+"cancel", acted(p.show("error", actTimeout, p.cancel)))
	mux.HandleFunc(base+"use", acted(p.show("strategies", actTimeout, p.use)))
	if p.Tokens != nil {
		mux.HandleFunc(base+"signin", acted(p.signIn))
		mux.HandleFunc(base+"signout", acted(p.signOut))
	}
	for name := range assets() {
		mux.HandleFunc(base+name, looked(static))
	}
	mux.HandleFunc(base, p.show("error", readTimeout, func(context.Context, visit) (any, error) {
		return nil, api.Errorf(api.ErrNotFound, "there is no such page")
	}))
	if base != "/" {
		mux.HandleFunc(strings.TrimSuffix(base, "/"), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", path.Base(base)+"/") // relative: proxies may have put something before it
			w.WriteHeader(http.StatusMovedPermanently)
		})
	}
	if p.Tokens != nil {
		return guard(inSession(base, mux))
	}
	return guard(mux)
}

// guard sets what every answer carries, and refuses what another site has sent.
func guard(h http.Handler) http.Handler {
	own := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		if err := own.Check(r); err != nil {
			http.Error(w, "this was sent by another site, and nothing was done: "+err.Error(), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// looked allows only reading methods.
func looked(h http.HandlerFunc) http.HandlerFunc { return only(h, http.MethodGet, http.MethodHead) }

// acted is for forms.
func acted(h http.HandlerFunc) http.HandlerFunc {
	return only(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		h(w, r)
	}, http.MethodPost)
}

func only(h http.HandlerFunc, methods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			http.Error(w, r.Method+" is not for this page", http.StatusMethodNotAllowed)
			return
		}
		h(w, r)
	}
}

// static serves a file, cacheable forever if the address has its hash.
func static(w http.ResponseWriter, r *http.Request) {
	a := assets()[path.Base(r.URL.Path)]
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("ETag", `"`+a.sum+`"`)
	if r.URL.Query().Get("v") == a.sum {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == `"`+a.sum+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, r, http.StatusOK, a.data)
}

// Static serves one of the page's static files below base, and reports whether there is such a file.
func Static(base string, w http.ResponseWriter, r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, rooted(base))
	if _, found := assets()[sessionPath.ReplaceAllString(rest, "")]; !ok || !found {
		return false
	}
	guard(looked(static)).ServeHTTP(w, r)
	return true
}

// rooted returns a base as the beginning of paths.
func rooted(base string) string {
	if base = "/" + strings.Trim(base, "/"); base != "/" {
		base += "/"
	}
	return base
}

// frame is the data of every page.
type frame struct {
	Status api.Status
	Now    time.Time
	Error  string
	User   string // the signed-in user; "" if none
	SignIn string // where the sign-in form leads; "" for no form
	To     string // where the user wanted to go
	Live   bool   // the page refetches itself while it is open
	Body   any

	Clusters []link // the pages of other clusters
}

type link struct{ Name, Address string }

// links returns the pages of other clusters.
func (p *Page) links() (all []link) {
	for _, text := range p.Clusters {
		if name, address, ok := config.ClusterPage(text); ok {
			all = append(all, link{name, address})
		}
	}
	return all
}

// show makes a page from what a function finds.
func (p *Page) show(name string, limit time.Duration, find func(context.Context, visit) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		f := frame{Live: name == "gantt" || name == "job", Clusters: p.links()}
		err := p.find(ctx, r, &f, find)
		if to, ok := f.Body.(redirect); ok && err == nil {
			w.Header().Set("Location", string(to))
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		if err != nil {
			p.refuse(w, r, f, err)
			return
		}
		render(w, r, name, http.StatusOK, f)
	}
}

// find runs the page's query when its turn has come.
func (p *Page) find(ctx context.Context, r *http.Request, f *frame, find func(context.Context, visit) (any, error)) error {
	var err error
	if p.Tokens != nil {
		if f.User, _, err = p.Tokens.User(r); err != nil {
			return err
		}
	}
	reader, err := p.Reader(r)
	if err != nil {
		return err
	}
	if r.Method != http.MethodPost { // acts wait for plugins, not for a processor
		select {
		case p.drawing <- struct{}{}:
			defer func() { <-p.drawing }()
		case <-ctx.Done():
			return api.Errorf(api.ErrUnavailable, "too many readers at once: try again")
		}
	}
	if f.Status, err = reader.Status(ctx); err != nil {
		return err
	}
	if f.Now = f.Status.Now; f.Now.IsZero() { // of a sidecar that does not report it
		f.Now = time.Now()
	}
	f.Body, err = find(ctx, visit{reader, r, f.Now})
	return err
}

// refuse shows an error.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, f frame, err error) {
	if f.Now.IsZero() {
		f.Now = time.Now()
	}
	f.Error, f.Live, f.Body = err.Error(), false, nil
	if errors.Is(err, api.ErrDenied) && p.Tokens != nil && p.Tokens.File != "" {
		f.SignIn = signInAt(r)
	}
	if f.SignIn != "" && f.To == "" && r.Method == http.MethodGet {
		f.To = path.Base(r.URL.Path) + "?" + r.URL.RawQuery
		if strings.HasSuffix(r.URL.Path, "/") {
			f.To = "./?" + r.URL.RawQuery
		}
	}
	status := statusOf(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	render(w, r, "error", status, f)
}

// render sends a page.
func render(w http.ResponseWriter, r *http.Request, name string, status int, f frame) {
	var page bytes.Buffer
	if err := pages()[name].ExecuteTemplate(&page, "frame", f); err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	send(w, r, status, page.Bytes())
}

func statusOf(err error) int {
	for kind, status := range map[error]int{api.ErrDenied: http.StatusUnauthorized, api.ErrForbidden: http.StatusForbidden,
		api.ErrNotFound: http.StatusNotFound, api.ErrInvalid: http.StatusBadRequest, api.ErrConflict: http.StatusConflict,
		api.ErrUnavailable: http.StatusServiceUnavailable} {
		if errors.Is(err, kind) {
			return status
		}
	}
	return http.StatusInternalServerError
}

// send answers, compressed if the browser accepts that.
func send(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	w.Header().Set("Vary", "Accept-Encoding")
	if len(data) < 1400 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(data) // an error means that the browser hung up
		}
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		z := gzip.NewWriter(w)
		_, _ = z.Write(data)
		z.Close()
	}
}

// pages holds the templates by name, each within the frame.
var pages = sync.OnceValue(readPages)

func readPages() map[string]*template.Template {
	all := map[string]*template.Template{}
	frame := template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	for _, name := range []string{"gantt", "job", "strategies", "overview", "history", "error"} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return all
}
