package codec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// sets returns a set of all values that is a graph, and one that is not.
func sets() [2]*Set {
	o := Options{Roots: []any{msg.PlannedJob{}}, Values: slices.Concat(Messages, Parts), Special: map[reflect.Type]Special{
		reflect.TypeFor[*msg.Problem](): {}, reflect.TypeFor[msg.Attempt](): {}}}
	plain := New(o)
	o.Graph = true
	return [2]*Set{plain, New(o)}
}

// byChance returns a value that is read from bytes by chance.
func byChance(s *Set, t reflect.Type, random *rand.Rand) reflect.Value {
	b := make([]byte, 2000)
	for i := range b {
		b[i] = byte(random.IntN(6) * random.IntN(8))
	}
	v := reflect.New(t).Elem()
	s.Decoder(b, nil).Value(v) // until something is malformed
	return v
}

// TestRoundTrip checks that values of every type are read as they were written, whole and as a change of another one.
func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for _, s := range sets() {
		for typ := range s.made().types {
			for range 10 {
				old, v, got := byChance(s, typ, random), byChance(s, typ, random), reflect.New(typ).Elem()
				got.Set(old)
				e := s.Encoder(nil, nil)
				e.change(s.types[typ], old, v)
				change := len(e.B)
				e.Value(v)
				d := s.Decoder(e.B, nil)
				d.change(s.types[typ], got)
				if d.Err() != nil || len(d.B) != len(e.B)-change || !same(s.types[typ], got, v) || !reflect.DeepEqual(v.Interface(), got.Interface()) {
					t.Fatalf("seed %d, %v after\n%+v: wrote\n%+v, read\n%+v: %v, %d bytes left", seed, typ, old, v, got, d.Err(), len(d.B)-len(e.B)+change)
				}
				got.SetZero()
				if d.Value(got); d.Err() != nil || len(d.B) > 0 || !reflect.DeepEqual(v.Interface(), got.Interface()) {
					t.Fatalf("seed %d, %v: wrote\n%+v, read\n%+v: %v, %d bytes left", seed, typ, v, got, d.Err(), len(d.B))
				}
			}
		}
	}
}

// TestRewrite checks that every text is rewritten, also in keys and errors.
func TestRewrite(t *testing.T) {
	e := sets()[0].Encoder(nil, nil)
	e.Rewrite = func(s string) string { return strings.ReplaceAll(s, "alice", "user1") }
	Write(e, &[]string{"of alice"})
	Write(e, &map[string]any{"alice": "alice", "x": []string{"alice"}})
	Write(e, &msg.Outcome{Err: &slurmctl.PendingError{Reason: "alice", Err: &slurmctl.CommandError{Args: []string{"alice"}, Stderr: "alice"}}})
	if bytes.Contains(e.B, []byte("alice")) || bytes.Count(e.B, []byte("user1")) < 7 {
		t.Errorf("%q", e.B)
	}
}

// TestEveryTypeIsKnown checks that the lists have every input, effect, and command, and every error that package msg or
// slurmctl exports.
func TestEveryTypeIsKnown(t *testing.T) {
	known := map[string]bool{}
	for _, v := range slices.Concat(Messages, Parts) {
		known[fmt.Sprintf("%T", v)] = true
	}
	for _, s := range sentinels {
		known[s.Error()] = true
	}
	found := 0
	see := func(what string) {
		if found++; !known[what] {
			t.Errorf("%s cannot be written: add it to the lists", what)
		}
	}
	for _, dir := range []string{"../core/msg", "../../../slurmctl"} {
		files, err := filepath.Glob(dir + "/*.go")
		must.OK(t, err)
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			must.OK(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if dir == "../core/msg" && n.Recv != nil && slices.Contains([]string{"input", "effect", "command"}, n.Name.Name) {
						see("msg." + n.Recv.List[0].Type.(*ast.Ident).Name)
					}
				case *ast.ValueSpec:
					for i, id := range n.Names {
						if !strings.HasPrefix(id.Name, "Err") || len(n.Values) <= i {
							continue
						}
						if call, ok := n.Values[i].(*ast.CallExpr); ok && len(call.Args) == 1 {
							see(strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`))
						}
					}
				}
				return true
			})
		}
	}
	if found < 40 {
		t.Fatalf("only %d were found", found)
	}
}

// TestErrors checks that an error answers questions in the same way after it was written and read.
func TestErrors(t *testing.T) {
	s := sets()[0]
	command := &slurmctl.CommandError{Args: []string{"scontrol", "update"}, ExitCode: 1, Stderr: "slurm_update error: Requested nodes are busy"}
	for _, err := range []error{
		errors.New("plain"), command, fmt.Errorf("wrapped: %w", command), msg.ErrBackfilling, fmt.Errorf("x: %w", msg.ErrNotWritten), msg.ErrNeverMerged,
		&slurmctl.CommandError{Args: []string{"squeue"}, ExitCode: -1, Err: context.DeadlineExceeded},
		&slurmctl.PendingError{Job: 7, Reason: "Resources", Err: command}, errors.Join(context.Canceled, command),
	} {
		var got error
		e := s.Encoder(nil, nil)
		Write(e, &err)
		d := s.Decoder(e.B, nil)
		if Read(d, &got); d.Err() != nil || got.Error() != err.Error() {
			t.Fatalf("%q became %q: %v", err, got, d.Err())
		}
		for _, s := range sentinels {
			if errors.Is(got, s) != errors.Is(err, s) {
				t.Errorf("%v: Is(%v) is %v", err, s, errors.Is(got, s))
			}
		}
		var a, b *slurmctl.CommandError
		if errors.As(err, &a) != errors.As(got, &b) || a != nil && (!slices.Equal(a.Args, b.Args) || a.ExitCode != b.ExitCode || a.Stderr != b.Stderr) {
			t.Errorf("%v: command %+v became %+v", err, a, b)
		}
		var p, q *slurmctl.PendingError
		if errors.As(err, &p) != errors.As(got, &q) || p != nil && (p.Job != q.Job || p.Reason != q.Reason) {
			t.Errorf("%v: %+v became %+v", err, p, q)
		}
	}
}
