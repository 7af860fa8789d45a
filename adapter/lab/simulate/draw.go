package simulate

import (
	"fmt"
	"time"
)

func (g *storming) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *storming) when(until time.Duration) time.Duration {
	return time.Duration(g.Int64N(int64(until/time.Millisecond))) * time.Millisecond
}

func (g *storming) at(t time.Duration, format string, args ...any) {
	g.lines = append(g.lines, timed{t, fmt.Sprintf(format, args...)})
}
