package naive

import (
	"flag"
	"os"
	"testing"
)

// Main runs tests with a thousand cases of every property, unless -rapid.checks says otherwise.
func Main(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
