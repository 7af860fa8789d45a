package slurmsim_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFilesCallBackward holds the order of files that the package's comment gives: a file calls
// functions of its own and of files before it.
func TestFilesCallBackward(t *testing.T) {
	fset := token.NewFileSet()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	var names []string
	for _, e := range entries {
		name, isGo := strings.CutSuffix(e.Name(), ".go")
		if !isGo || strings.HasSuffix(name, "_test") {
			continue
		}
		f, err := parser.ParseFile(fset, e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		if name != "doc" {
			names = append(names, name)
		}
	}
	order := fileOrder(t)
	if listed := slices.Sorted(slices.Values(order)); !slices.Equal(listed, names) {
		t.Errorf("the package's comment lists the files\n%s\nbut there are\n%s", listed, names)
	}

	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	// Imported packages are missing, so there are errors. The package's own functions are found.
	checker := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := checker.Check("slurmsim", fset, files, &info)
	place := func(p token.Pos) int {
		return slices.Index(order, strings.TrimSuffix(fset.Position(p).Filename, ".go"))
	}
	calls := 0
	for id, o := range info.Uses {
		if f, ok := o.(*types.Func); ok && f.Pkg() == pkg {
			calls++
			if place(id.Pos()) < place(f.Pos()) {
				t.Errorf("%s: %s is in the later file %s", fset.Position(id.Pos()), f.Name(), fset.Position(f.Pos()).Filename)
			}
		}
	}
	if calls < 500 {
		t.Errorf("found only %d calls", calls)
	}
}

// fileOrder reads the list of files in doc.go.
func fileOrder(t *testing.T) []string {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "// # Files\n")
	list, _, _ = strings.Cut(list, "// # ")
	var order []string
	for _, line := range regexp.MustCompile(`(?m)^//\t([a-z_]+(, [a-z_]+)*)`).FindAllStringSubmatch(list, -1) {
		order = append(order, strings.Split(line[1], ", ")...)
	}
	return order
}

// nothing imports no package.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	p.MarkComplete()
	return p, nil
}
