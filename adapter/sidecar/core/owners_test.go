package core

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostFields bounds a group of a job's fields.
const mostFields = 15

// TestOwners: the fields of a job are in groups, and only a group's owner and package state, which has the verbs,
// write them. The same holds for the snapshot of Slurm. The owner is named in the group's comment. Copies in local
// variables are free, and a Target is change's draft of a changed job. A pointer to what Slurm shows of a job or a node
// may be taken to read it; only verbs write that.
func TestOwners(t *testing.T) {
	w := load(t)
	if w.readOwners(); w.owner["state.Snapshot"] == "" || w.owner["state.Derived"] == "" {
		t.Error("the snapshot of Slurm names no owner")
	}
	for _, room := range w.rooms {
		if room.name != "state" {
			for _, file := range room.files {
				ast.Inspect(file, func(n ast.Node) bool { w.visit(room, n); return true })
			}
		}
	}
	for _, fault := range w.faults {
		t.Error(fault)
	}
}

// room is a checked package below the core.
type room struct {
	name  string
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
}

// watch looks for writes.
type watch struct {
	t      *testing.T
	files  *token.FileSet
	rooms  []*room
	owner  map[string]string // by the name of a struct, such as state.Waits
	groups map[string]bool   // the structs that Job embeds, and those of the snapshot
	faults []string
}

// load checks the types of the rooms. The go command has the types of what they import.
func load(t *testing.T) *watch {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Dir}} {{.Export}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports, w := map[string]string{}, &watch{t: t, files: token.NewFileSet(), owner: map[string]string{}, groups: map[string]bool{}}
	var dirs []string
	for line := range strings.Lines(string(out)) {
		if at, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			dir, export, _ := strings.Cut(rest, " ")
			exports[at] = export
			if strings.Contains(at, "/sidecar/core") && path.Base(at) != "statetest" {
				dirs = append(dirs, at+" "+dir)
			}
		}
	}
	from := importer.ForCompiler(w.files, "gc", func(at string) (io.ReadCloser, error) {
		data, err := os.ReadFile(exports[at])
		return io.NopCloser(bytes.NewReader(data)), err
	})
	for _, line := range dirs {
		at, dir, _ := strings.Cut(line, " ")
		w.rooms = append(w.rooms, w.check(at, dir, from))
	}
	return w
}

// check parses a room and checks its types.
func (w *watch) check(at, dir string, from types.Importer) *room {
	r := &room{name: path.Base(at), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(w.files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			w.t.Fatal(err)
		}
		r.files = append(r.files, file)
	}
	var err error
	if r.pkg, err = (&types.Config{Importer: from}).Check(at, w.files, r.files, r.info); err != nil {
		w.t.Fatal(err)
	}
	return r
}

var namesOwner = regexp.MustCompile(`Owner: (\w+)\.`)

// readOwners finds the groups of Job and their owners.
func (w *watch) readOwners() {
	state := w.rooms[slices.IndexFunc(w.rooms, func(r *room) bool { return r.name == "state" })]
	said := map[string]string{}
	for _, file := range state.files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				if m := namesOwner.FindStringSubmatch(strings.Join(strings.Fields(d.Doc.Text()), " ")); m != nil {
					said[d.Specs[0].(*ast.TypeSpec).Name.Name] = m[1]
				}
			}
		}
	}
	w.owner["state.Job"], w.owner["state.Target"], w.owner["row.Job"] = "state", "change", "state"
	w.owner["state.Snapshot"], w.owner["state.Derived"], w.groups["state.Snapshot"] = said["Snapshot"], said["Derived"], true
	job := state.pkg.Scope().Lookup("Job").Type().Underlying().(*types.Struct)
	stored := underlying(job.Field(0).Type()).(*types.Struct) // row.Job
	for i := range stored.NumFields() {
		f := stored.Field(i)
		if w.owner["row."+f.Name()] = "state"; underlying(f.Type()).(*types.Struct).NumFields() > mostFields {
			w.t.Errorf("row.%s has more than %d fields", f.Name(), mostFields)
		}
	}
	for i := range job.NumFields() {
		f := job.Field(i)
		group, isStruct := f.Type().Underlying().(*types.Struct)
		switch {
		case !isStruct || !f.Embedded():
		case said[f.Name()] == "":
			w.t.Errorf("the group %s names no owner", f.Name())
		case group.NumFields() > mostFields:
			w.t.Errorf("the group %s has %d fields: more than %d", f.Name(), group.NumFields(), mostFields)
		default:
			w.owner["state."+f.Name()], w.groups["state."+f.Name()] = said[f.Name()], true
		}
	}
	if job.NumFields() > mostFields || len(w.groups) < 11 {
		w.t.Errorf("Job has %d fields, and %d groups were found", job.NumFields(), len(w.groups))
	}
}

// visit looks for a write in a piece of source.
func (w *watch) visit(r *room, n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			w.written(r, e, false)
		}
	case *ast.IncDecStmt:
		w.written(r, n.X, false)
	case *ast.RangeStmt:
		w.written(r, n.Key, false)
		w.written(r, n.Value, false)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			w.written(r, n.X, true)
		}
	case *ast.CallExpr:
		w.called(r, n)
	case *ast.CompositeLit:
		if group := structName(r.info.TypeOf(n)); w.groups[group] && len(n.Elts) > 0 {
			w.blame(r, n, w.owner[group], group)
		}
	}
}

// changers are functions that change their first argument.
var changers = []string{"delete", "clear", "copy", "maps.DeleteFunc", "maps.Copy", "slices.Sort", "slices.SortFunc", "slices.SortStableFunc", "slices.Reverse"}

// called looks for calls that change a field: by a method with a pointer as receiver, or a function.
func (w *watch) called(r *room, call *ast.CallExpr) {
	if slices.Contains(changers, types.ExprString(call.Fun)) {
		w.written(r, call.Args[0], false)
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || r.info.Selections[fun] == nil {
		return
	}
	method, ok := r.info.Selections[fun].Obj().(*types.Func)
	if !ok || isPointer(r.info.TypeOf(fun.X)) || method.Signature().Recv() == nil || !isPointer(method.Signature().Recv().Type()) {
		return
	}
	if strings.HasPrefix(structName(method.Signature().Recv().Type()), "state.") {
		return // a verb
	}
	w.written(r, fun.X, true)
}

// written reports a write to an expression, or that its address is taken, if the room does not own its field.
func (w *watch) written(r *room, e ast.Expr, address bool) {
	for e != nil {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if sel := r.info.Selections[x]; sel == nil || sel.Kind() != types.FieldVal || isCopy(r, x) {
				return
			}
			if w.passes(r, x, address) {
				return
			}
			e = x.X
		default:
			return
		}
	}
}

// shown lists the types of what Slurm shows, and shownIn the fields with it.
var (
	shown   = []string{"slurmctl.Job", "slurmctl.Node"}
	shownIn = []string{"state.Sight.Record", "state.Snapshot.Jobs", "state.Snapshot.Nodes"}
)

// passes blames the room for each field on the way of a selection that it does not own. It reports whether the
// way ends here: the draft of a change has its own owner, and what a pointer leads to is another value.
func (w *watch) passes(r *room, x *ast.SelectorExpr, address bool) (ends bool) {
	if isDraft(r, x) {
		w.blame(r, x, w.owner["state.Target"], "a draft's "+x.Sel.Name)
		return true
	}
	sel := r.info.Selections[x]
	at := sel.Recv()
	for k, i := range sel.Index() {
		name := structName(at)
		field := underlying(at).(*types.Struct).Field(i)
		whole := structName(field.Type()) // of an embedded group
		switch {
		case slices.Contains(shown, name) && !address && isPointer(at):
			w.blame(r, x, "state", "a record's "+field.Name())
			return true
		case address && slices.Contains(shownIn, name+"."+field.Name()):
		case !field.Embedded() && w.owner[name] != "":
			w.blame(r, x, w.owner[name], name+"."+field.Name())
		case field.Embedded() && w.owner[whole] != "" && k == len(sel.Index())-1:
			w.blame(r, x, w.owner[whole], whole)
		}
		at = field.Type()
	}
	return isPointer(r.info.TypeOf(x.X)) && structName(r.info.TypeOf(x.X)) != "state.Job" && structName(r.info.TypeOf(x.X)) != "row.Job"
}

// blame records a write by a room that is not the owner.
func (w *watch) blame(r *room, at ast.Node, owner, what string) {
	if owner == "" || owner == r.name {
		return
	}
	p := w.files.Position(at.Pos())
	fault := fmt.Sprintf("%s/%s:%d: writes %s, which %s owns: call a verb of package state", r.name, filepath.Base(p.Filename), p.Line, what, owner)
	if !slices.Contains(w.faults, fault) {
		w.faults = append(w.faults, fault)
	}
}

// isDraft reports whether a selection leads through the draft of a change.
func isDraft(r *room, x *ast.SelectorExpr) bool {
	for e := ast.Expr(x); ; {
		switch y := e.(type) {
		case *ast.SelectorExpr:
			if e = y.X; structName(r.info.TypeOf(e)) == "state.Target" {
				return true
			}
		case *ast.IndexExpr:
			e = y.X
		default:
			return false
		}
	}
}

// isCopy reports whether a selection leads only through values of a local variable, which is a copy.
func isCopy(r *room, x *ast.SelectorExpr) bool {
	for e := ast.Expr(x); ; {
		switch y := e.(type) {
		case *ast.ParenExpr:
			e = y.X
		case *ast.SelectorExpr:
			if sel := r.info.Selections[y]; sel == nil || sel.Indirect() {
				return false
			}
			e = y.X
		case *ast.Ident:
			v, ok := r.info.ObjectOf(y).(*types.Var)
			return ok && !isPointer(v.Type()) && v.Parent() != r.pkg.Scope()
		default:
			return false
		}
	}
}

func isPointer(t types.Type) bool { _, is := t.Underlying().(*types.Pointer); return is }

// underlying returns the underlying type of what a type points to.
func underlying(t types.Type) types.Type {
	if p, is := t.Underlying().(*types.Pointer); is {
		t = p.Elem()
	}
	return t.Underlying()
}

// structName returns a named type as package.Name.
func structName(t types.Type) string {
	if t == nil {
		return ""
	}
	if p, is := t.Underlying().(*types.Pointer); is {
		t = p.Elem()
	}
	if n, is := types.Unalias(t).(*types.Named); is && n.Obj().Pkg() != nil {
		return n.Obj().Pkg().Name() + "." + n.Obj().Name()
	}
	return ""
}
