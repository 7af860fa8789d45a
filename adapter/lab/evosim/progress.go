package evosim

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// Progress shows on a terminal how many steps are done and how long the rest may take. It is safe
// for concurrent use.
type Progress struct {
	file  *os.File // nil without a terminal
	what  string
	steps int
	begin time.Time

	mu    sync.Mutex
	done  int
	shown time.Time
}

// NewProgress returns a display of the steps, which shows nothing if stderr is no terminal.
func NewProgress(stderr io.Writer, steps int, what string) *Progress {
	p := &Progress{what: what, steps: steps, begin: time.Now()}
	if f, ok := stderr.(*os.File); ok && steps > 0 && display.Look(f, os.Getenv).TTY {
		p.file = f
	}
	return p
}

// Step counts one more step.
func (p *Progress) Step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(p.done + 1)
}

// Set sets how many steps are done.
func (p *Progress) Set(done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(done)
}

// Of sets how many of how many steps are done.
func (p *Progress) Of(steps, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = steps
	p.show(done)
}

func (p *Progress) show(done int) {
	p.done = done
	now := time.Now()
	if p.file == nil || done <= 0 || now.Sub(p.shown) < 200*time.Millisecond {
		return
	}
	p.shown = now
	left := time.Duration(float64(now.Sub(p.begin)) / float64(done) * float64(p.steps-done))
	fmt.Fprintf(p.file, "\r%s: %d of %d (%d %%), %v left\x1b[K", p.what, done, p.steps, 100*done/p.steps, left.Round(time.Second))
}

// Finish clears the line.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		fmt.Fprint(p.file, "\r\x1b[K")
	}
}
