package bag

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// toWorker is a line that the leader writes to a worker: one of its fields.
type toWorker struct {
	Setup *Setup   `json:"setup,omitempty"`
	Run   *order   `json:"run,omitempty"`
	Drain *float64 `json:"drain,omitempty"` // seconds until the node is given back
}

// fromWorker is a line that a worker writes to the leader.
type fromWorker struct {
	Hello  bool  `json:"hello,omitempty"`
	Ending bool  `json:"ending,omitempty"` // Slurm ends the worker
	Ended  *over `json:"ended,omitempty"`
}

// Setup says how workers run tasks.
type Setup struct {
	Command []string `json:"command"` // with {} for the task
	Job     uint32   `json:"job"`
	Dir     string   `json:"dir"` // of the bag; absolute
	Output  string   `json:"output"`
	Error   string   `json:"error,omitempty"` // "": with the output
	Keep    Keeping  `json:"keep"`
	Collect []string `json:"collect,omitempty"` // runs once all tasks of a campaign have ended
}

// order is a task to run.
type order struct {
	Task  int    `json:"task"`
	ID    int    `json:"id"`
	Run   string `json:"run"` // which no other run of any task has
	Text  []byte `json:"text"`
	Saved bool   `json:"saved,omitempty"` // it goes on from its checkpoint
}

// over is the end of a run.
type over struct {
	Task    int     `json:"task"`
	Run     string  `json:"run"`
	Status  int     `json:"status"`
	Signal  int     `json:"signal,omitempty"`
	Seconds float64 `json:"seconds"`
	Asked   bool    `json:"asked,omitempty"` // it was asked to end, or was ended
	Took    float64 `json:"took,omitempty"`  // seconds from then to its end
	Saved   bool    `json:"saved,omitempty"` // it has a checkpoint
	Full    bool    `json:"full,omitempty"`  // the disk is
	Why     string  `json:"why,omitempty"`
}

// mostWire bounds a line from a worker to the leader, and from the leader to a worker.
const (
	mostFromWorker = 16 << 10
	mostToWorker   = 4 << 20
)

// expand returns a pattern of an output with the ID of a task (%a) and the job (%j).
func expand(pattern string, id int, job uint32) string {
	return strings.NewReplacer("%%", "%", "%a", strconv.Itoa(id), "%j", strconv.FormatUint(uint64(job), 10)).Replace(pattern)
}

// outputs returns the files of a task's output and errors.
func (s Setup) outputs(id int) []string {
	if id == collectID {
		return []string{filepath.Join(s.Dir, collectedFile)}
	}
	files := []string{expand(s.Output, id, s.Job)}
	if s.Error != "" {
		files = append(files, expand(s.Error, id, s.Job))
	}
	return files
}

// saved returns where the checkpoint of a task is.
func (s Setup) saved(id int) string { return filepath.Join(s.Dir, savedFolder, strconv.Itoa(id)) }

// pipe writes lines to a worker, which may read them slowly.
type pipe struct {
	mu    sync.Mutex
	lines chan []byte
	ended bool
}

func newPipe(to io.WriteCloser, most int) *pipe {
	p := &pipe{lines: make(chan []byte, most)}
	go func() {
		defer to.Close()
		for line := range p.lines {
			if _, err := to.Write(line); err != nil {
				for range p.lines { //nolint:revive // until it is closed
				}
			}
		}
	}()
	return p
}

// send sends a line, or none to a worker that does not read.
func (p *pipe) send(m toWorker) {
	line, err := json.Marshal(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.ended {
		return
	}
	select {
	case p.lines <- append(line, '\n'):
	default:
	}
}

func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		close(p.lines)
	}
}

// splitter calls do for each line written to it, and drops those that are too long.
type splitter struct {
	line []byte
	long bool
	do   func(line []byte)
}

func (s *splitter) Write(b []byte) (int, error) {
	n := len(b)
	for {
		at := bytes.IndexByte(b, '\n')
		if at < 0 {
			if s.long = s.long || len(s.line)+len(b) > mostFromWorker; !s.long {
				s.line = append(s.line, b...)
			}
			return n, nil
		}
		if !s.long && len(s.line)+at <= mostFromWorker {
			s.do(append(s.line, b[:at]...))
		}
		s.line, s.long, b = s.line[:0], false, b[at+1:]
	}
}

// duration converts seconds.
func duration(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), 1e9) * float64(time.Second))
}
