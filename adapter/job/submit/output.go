package submit

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// idWatcher passes sbatch's output on once the job that its first ID names was looked at.
type idWatcher struct {
	out  io.Writer
	look func(id uint32) error

	mu     sync.Mutex
	held   bytes.Buffer
	looked bool
	lost   error
}

func (w *idWatcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held.Write(p)
	if !w.looked {
		whole := w.held.Bytes()[:bytes.LastIndexByte(w.held.Bytes(), '\n')+1]
		id, err := parseJobID(submitted(lastLine(string(whole))))
		if err != nil {
			return len(p), nil
		}
		w.looked, w.lost = true, w.look(id)
	}
	if w.lost == nil {
		_, _ = w.held.WriteTo(w.out)
	}
	return len(p), nil
}

// finish passes on the rest and reports the result of the check.
func (w *idWatcher) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost == nil {
		_, _ = w.held.WriteTo(w.out)
	}
	return w.lost
}

// submitted returns the ID in sbatch's output without --parsable: "Submitted batch job 7", with "
// on cluster c" if clusters are named.
func submitted(line string) string {
	rest, ok := strings.CutPrefix(line, "Submitted batch job ")
	if !ok {
		return line
	}
	id, _, _ := strings.Cut(rest, " on cluster ")
	return id
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := text[strings.LastIndexByte(text, '\n')+1:]
	line, _, _ = strings.Cut(line, " on cluster ")
	return line
}

// parseJobID reads what sbatch --parsable prints: the id, and perhaps a cluster.
func parseJobID(text string) (uint32, error) {
	line := strings.TrimSpace(text)
	if at := strings.LastIndexByte(line, '\n'); at >= 0 {
		line = line[at+1:] // a site's plugins may print above
	}
	digits, _, _ := strings.Cut(line, ";")
	id, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || id == 0 {
		return 0, errors.New("sbatch printed no job id: " + strconv.Quote(legible.Brief(text)))
	}
	return uint32(id), nil
}

// errorLines passes on what sbatch prints with --quiet: errors.
type errorLines struct {
	out  io.Writer
	held bytes.Buffer
}

func (e *errorLines) Write(p []byte) (int, error) {
	e.held.Write(p)
	for bytes.IndexByte(e.held.Bytes(), '\n') >= 0 {
		line, _ := e.held.ReadString('\n')
		e.pass(line)
	}
	return len(p), nil
}

func (e *errorLines) pass(line string) {
	if rest, own := strings.CutPrefix(line, "sbatch: "); !own || strings.HasPrefix(rest, "error:") || strings.HasPrefix(rest, "fatal:") {
		_, _ = io.WriteString(e.out, line)
	}
}
