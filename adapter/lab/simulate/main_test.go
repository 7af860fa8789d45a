package simulate

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // much is made and little kept
	os.Exit(m.Run())
}
