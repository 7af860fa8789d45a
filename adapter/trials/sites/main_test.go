package sites

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/rig"
)

var (
	all = flag.Bool("sites.all", false, "try every site (make sites)")
	top = flag.String("sites.root", "../../..", "what -sites.out is relative to")
	out = flag.String("sites.out", "", "document that the table is written into, as slurmctl/MATRIX.md")
)

// bin is the folder of the commands, built once.
var bin string

func TestMain(m *testing.M) {
	if err := rig.AtOnce(3); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rig.Main(func(dir string) int {
		bin = dir
		code := m.Run()
		if *all {
			fmt.Println()
			WriteTable(os.Stdout, results)
		}
		if *out != "" && len(results) > 0 {
			path := *out
			if !filepath.IsAbs(path) {
				path = filepath.Join(*top, path)
			}
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
