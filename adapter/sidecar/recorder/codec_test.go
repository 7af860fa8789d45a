package recorder

import (
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
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// fill gives v a value by chance, to a depth.
func fill(v reflect.Value, random *rand.Rand, depth int) {
	switch v.Type() {
	case timeType:
		if random.IntN(4) > 0 {
			t := time.Unix(random.Int64N(4e9), random.Int64N(1e9))
			if random.IntN(2) == 0 {
				t = t.UTC()
			}
			v.Set(reflect.ValueOf(t))
		}
		return
	case errorType, problemType, attemptType, reflect.TypeFor[[]*planner.Last](), reflect.TypeFor[[]msg.Mark](): // what planning keeps for itself changes no plan; marks follow from the jobs
		return
	}
	n := 0
	if depth > 0 {
		n = random.IntN(4)
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(random.IntN(200) - 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(random.IntN(200)))
	case reflect.Float64:
		v.SetFloat(random.Float64())
	case reflect.String:
		v.SetString(fmt.Sprint("s", random.IntN(100)))
	case reflect.Slice:
		if depth > 0 && random.IntN(4) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(v.Index(i), random, depth-1)
		}
	case reflect.Map:
		if depth > 0 && random.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(key, random, depth-1)
				fill(value, random, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Pointer:
		if n > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), random, depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[msg.PlannedStep]() && v.Type().Field(i).Name == "At" {
				continue // the core works out where the nodes are; it is not recorded with changes
			}
			if v.Type() == reflect.TypeFor[msg.Planned]() && v.Type().Field(i).Name == "Made" {
				continue // nor what planning keeps for itself
			}
			fill(field(v, i), random, depth)
		}
	case reflect.Interface:
		var fits []reflect.Type
		for _, t := range types {
			if t.AssignableTo(v.Type()) && t != savePlanType {
				fits = append(fits, t)
			}
		}
		if n > 0 {
			inner := reflect.New(fits[random.IntN(len(fits))]).Elem()
			fill(inner, random, depth-1)
			v.Set(inner)
		}
	}
}

// TestRoundTrip checks that values of every type are read as written, also after others of the
// type.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, typ := range types {
		e, d := encoder{seen: &seen{}}, decoder{seen: &seen{}}
		for range 50 {
			v, got := reflect.New(typ).Elem(), reflect.New(typ).Elem()
			fill(v, random, 6)
			e.b = nil
			e.value(v)
			d.b = e.b
			d.value(got)
			if d.err != nil || len(d.b) > 0 {
				t.Fatalf("%v: %v, %d bytes left", typ, d.err, len(d.b))
			}
			if plan, ok := v.Interface().(msg.SavePlan); ok {
				if e := msg.Effect(got.Interface().(msg.SavePlan)); !sameEffect(plan, e) {
					t.Fatalf("wrote %+v, read %+v", plan, e)
				}
				continue
			}
			if !reflect.DeepEqual(v.Interface(), got.Interface()) {
				t.Fatalf("%v: wrote\n%+v, read\n%+v", typ, v, got)
			}
		}
	}
}

// TestPendingRoundTrip: tasks under way are data, which can be written and read again.
func TestPendingRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var p, got state.Pending
		fill(reflect.ValueOf(&p).Elem(), random, 6)
		e := encoder{}
		e.value(reflect.ValueOf(&p).Elem())
		d := decoder{b: e.b}
		if d.value(reflect.ValueOf(&got).Elem()); d.err != nil || len(d.b) > 0 || !reflect.DeepEqual(p, got) {
			t.Fatalf("wrote\n%+v, read\n%+v: %v, %d bytes left", p, got, d.err, len(d.b))
		}
	}
}

// TestEveryTypeIsKnown: what package core takes for an input, an effect or a command can be
// written, and every error that it exports, and slurmctl does, keeps what it is.
func TestEveryTypeIsKnown(t *testing.T) {
	known := map[string]bool{}
	for _, typ := range types {
		known[typ.String()] = true
	}
	errs := map[string]bool{}
	for _, s := range sentinels {
		errs[s.Error()] = true
	}
	methods := 0
	for _, dir := range []string{"../core/msg", "../../../slurmctl"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if dir == "../core/msg" && n.Recv != nil && slices.Contains([]string{"input", "effect", "command"}, n.Name.Name) {
						methods++
						if typ := "msg." + n.Recv.List[0].Type.(*ast.Ident).Name; !known[typ] {
							t.Errorf("%s cannot be written: add it to types", typ)
						}
					}
				case *ast.ValueSpec:
					for i, id := range n.Names {
						if !strings.HasPrefix(id.Name, "Err") || len(n.Values) <= i {
							continue
						}
						if call, ok := n.Values[i].(*ast.CallExpr); ok && len(call.Args) == 1 {
							text := strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`)
							if methods++; !errs[text] {
								t.Errorf("%s loses what it is: add it to sentinels", id.Name)
							}
						}
					}
				}
				return true
			})
		}
	}
	if methods < 40 {
		t.Fatalf("only %d were found", methods)
	}
}

// TestErrors: errors answer alike after they were written.
func TestErrors(t *testing.T) {
	command := &slurmctl.CommandError{Args: []string{"scontrol", "update"}, ExitCode: 1, Stderr: "slurm_update error: Requested nodes are busy"}
	for _, err := range []error{
		errors.New("plain"), command, fmt.Errorf("wrapped: %w", command), msg.ErrBackfilling, fmt.Errorf("x: %w", msg.ErrNotWritten), msg.ErrNeverMerged,
		&slurmctl.CommandError{Args: []string{"squeue"}, ExitCode: -1, Err: context.DeadlineExceeded},
		&slurmctl.PendingError{Job: 7, Reason: "Resources", Err: command}, errors.Join(context.Canceled, command),
	} {
		o := msg.Outcome{Task: 1, Err: err}
		e := encoder{}
		e.value(reflect.ValueOf(&o).Elem())
		var back msg.Outcome
		d := decoder{b: e.b}
		if d.value(reflect.ValueOf(&back).Elem()); d.err != nil {
			t.Fatal(d.err)
		}
		got := back.Err
		if got.Error() != err.Error() {
			t.Errorf("%q became %q", err, got)
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

// TestSameSeesEveryField checks that the comparison covers every field.
func TestSameSeesEveryField(t *testing.T) {
	sees(t, sameJob)
	sees(t, sameNode)
	sees(t, samePartition)
	sees(t, sameReservation)
	sees(t, samePlan)
}

func sees[T any](t *testing.T, same func(a, b *T) bool) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range reflect.TypeFor[T]().NumField() {
		var a, b T
		v := reflect.ValueOf(&b).Elem()
		for v.IsZero() {
			fill(v.Field(i), random, 3)
		}
		if same(&a, &b) || !same(&b, &b) {
			t.Errorf("%T: field %s is not compared", a, v.Type().Field(i).Name)
		}
	}
	if reflect.TypeFor[T]().NumField() > 64 {
		t.Error("too many fields for a mask")
	}
}
