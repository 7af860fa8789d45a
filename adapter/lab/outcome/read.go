package outcome

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
)

// Read reads an outcome: what evosim run --format=json prints, or a trace with jobs' starts,
// gzipped or not. Its name comes from the file, or otherwise is name.
func Read(in io.Reader, name string, more ...trace.Format) (Outcome, error) {
	text := bufio.NewReaderSize(in, 1<<16)
	if magic, _ := text.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return Outcome{}, err
		}
		text = bufio.NewReaderSize(unzipped, 1<<16)
	}
	workload.SkipMark(text)
	if begin, _ := text.Peek(4096); isResult(begin) {
		return readResult(text, name)
	}
	r, err := trace.NewReader(text, trace.Options{AnyOrder: true}, more...)
	if err != nil {
		return Outcome{}, err
	}
	t, err := r.ReadAll()
	if err != nil {
		return Outcome{}, err
	}
	return FromTrace(t, name)
}

// mostResult bounds the bytes read of a JSON result.
var mostResult int64 = 1 << 30

func readResult(in io.Reader, name string) (Outcome, error) {
	var r struct {
		Name     string `json:"name"`
		Strategy string `json:"strategy"`
		Nodes    int    `json:"nodes"`
		Sidecar  *bool  `json:"sidecar"`
		Left     int64  `json:"left"`
		Made     Made   `json:"made"`
		Jobs     []struct {
			Job
			Steps []Size `json:"steps"` // as its application saw them start
		} `json:"jobs"`
		Metrics struct {
			Allocated float64 `json:"allocated"`
			HeldIdle  float64 `json:"held_idle"`
			Energy    *Energy `json:"energy"`
		} `json:"metrics"`
	}
	limited := &io.LimitedReader{R: in, N: mostResult}
	if err := json.NewDecoder(limited).Decode(&r); err != nil {
		switch {
		case limited.N <= 0:
			err = fmt.Errorf("more than %d bytes", mostResult)
		case errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("the file is cut short")
		}
		return Outcome{}, err
	}
	o := Outcome{Name: r.Name, Made: r.Made, Run: Run{Nodes: r.Nodes, Jobs: make([]Job, len(r.Jobs)), Allocated: r.Metrics.Allocated, HeldIdle: r.Metrics.HeldIdle, Energy: r.Metrics.Energy, Left: r.Left}}
	for i := range r.Jobs {
		o.Jobs[i] = r.Jobs[i].Job
	}
	if o.Name == "" {
		o.Name = r.Strategy
		if r.Sidecar != nil && !*r.Sidecar {
			o.Name = "Slurm as modelled"
		}
	}
	if o.Name == "" {
		o.Name = name
	}
	if err := o.Check(); err != nil {
		return Outcome{}, err
	}
	for i := range r.Jobs {
		o.Jobs[i].Sizes = together(o.Jobs[i].Sizes, r.Jobs[i].Steps)
	}
	o.sort()
	return o, nil
}

// together returns a job's sizes if further Slurm jobs bring nodes: the larger of its own size and
// its application's, step by step.
func together(own, steps []Size) []Size {
	var all []Size
	for i, k, n, m := 0, 0, 0, 0; i < len(own); {
		at := own[i].At
		if k < len(steps) && steps[k].At < at {
			at = steps[k].At
		}
		for ; k < len(steps) && steps[k].At == at; k++ {
			m = steps[k].Nodes
		}
		for ; i < len(own) && own[i].At == at; i++ {
			n = own[i].Nodes
		}
		most := max(n, m)
		if n == 0 {
			most = 0 // not yet, or no longer
		}
		if last := len(all) - 1; last < 0 || all[last].Nodes != most {
			all = append(all, Size{at, most})
		}
	}
	return all
}

// ReadFile reads an outcome named like the file.
func ReadFile(file string, more ...trace.Format) (Outcome, error) {
	f, err := os.Open(file)
	if err != nil {
		return Outcome{}, err
	}
	defer f.Close()
	o, err := Read(f, Stem(file), more...)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return o, err
}

// Stem returns a file's name without folder and extensions.
func Stem(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".gz")
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// Files returns possible outcomes in a folder, sorted by name.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".gz")
		if ext := filepath.Ext(name); e.Type().IsRegular() && (ext == ".swf" || ext == ".json") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no outcome there: files that end in .swf or .json, gzipped or not, as evosim baseline --output and evosim run --format=json write them", dir)
	}
	return files, nil
}
