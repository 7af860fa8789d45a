package sites

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
	"github.com/evoslurm/evoslurm/adapter/trials/rig"
)

var (
	built = flag.String("sites.bin", "", "folder of the commands, which are built already")
	into  = flag.String("sites.results", "", "file that the results are written into")

	all = flag.Bool("sites.all", false, "try every site (make sites)")
	top = flag.String("sites.root", "../../..", "what -sites.out is relative to")
	out = flag.String("sites.out", "", "document that the table is written into, as slurmctl/MATRIX.md")
)

// bin is the folder of the commands, built once.
var bin string

func TestMain(m *testing.M) {
	matrix.Entered()
	if err := rig.AtOnce(3); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *built != "" { // in a root: the process outside of it writes the table
		bin = *built
		code := m.Run()
		if err := writeResults(*into); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}
	path := *out
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(*top, path)
	}
	if err := OpenDocument(path); err != nil {
		fmt.Fprintln(os.Stderr, "-sites.out:", err)
		os.Exit(1)
	}
	rig.Main(func(dir string) int {
		bin = dir
		code := m.Run()
		if *all {
			fmt.Println()
			WriteTable(os.Stdout, results)
		}
		if path != "" && len(results) > 0 {
			if err := WriteDocument(path, results, time.Now()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return code
	})
}

var (
	resultsLock sync.Mutex
	results     []Result
)

func record(r Result) {
	resultsLock.Lock()
	defer resultsLock.Unlock()
	results = append(results, r)
}
