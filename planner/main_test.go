package planner

import (
	"flag"
	"os"
	"testing"
)

// TestMain has properties checked on a thousand cases each, if not told otherwise
// with -rapid.checks.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
