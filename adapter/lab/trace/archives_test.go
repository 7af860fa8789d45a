//go:build archives

package trace_test

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

var traces = flag.String("traces", "", "folder of real traces (make archives)")

// TestArchives: real traces come back as they were, by way of each format.
func TestArchives(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(*traces, "*.swf*"))
	if len(files) == 0 {
		t.Fatalf("-traces=%s: no *.swf there", *traces)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tr := read(t, string(text), trace.Options{})
		for _, format := range []string{"swf", "json"} {
			if back := read(t, write(t, format, tr), trace.Options{}); !reflect.DeepEqual(back.Jobs, tr.Jobs) || !reflect.DeepEqual(back.Header, tr.Header) {
				t.Errorf("%s: %s is not the same", name, format)
			}
		}
		t.Logf("%s: %d jobs, %q", name, len(tr.Jobs), tr.Report.Notes)
	}
}
