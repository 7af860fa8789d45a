package sites

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	all = flag.Bool("sites.all", false, "try every site (make sites)")
	top = flag.String("sites.root", "../../..", "what -sites.out is relative to")
	out = flag.String("sites.out", "", "document that the table is written into, as slurmctl/MATRIX.md")
)

// bin is the folder of the commands, built once.
var bin string

// atOnce is how many sites are at work at a time, unless -parallel says so: they wait
// more than they compute.
const atOnce = "3"

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := func() int {
		dir, err := os.MkdirTemp("", "evoslurm-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil { // jobs of other users run them
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		build := exec.Command("go", "build", "-o", dir, "../../cmd/evosbatch", "../../cmd/evosctl", "../../cmd/evosqueue", "../../cmd/evosrun", "../../cmd/evoslurmd")
		if text, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, text)
			return 1
		}
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
	}()
	os.Exit(code)
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
