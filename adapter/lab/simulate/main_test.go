package simulate

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(1600) // much is made and little kept
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}
