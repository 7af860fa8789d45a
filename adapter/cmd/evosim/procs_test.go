package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/evosim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestProcessors checks that output is equal to the byte on one processor and on many.
func TestProcessors(t *testing.T) {
	trace := "; MaxNodes: 8\n"
	for i := range 40 {
		trace += strings.Join([]string{strconv.Itoa(i + 1), strconv.Itoa(i * 40), "-1", strconv.Itoa(100 + i*37%300), strconv.Itoa(1 + i*5%8), "-1 -1 -1 900 -1 1", strconv.Itoa(i % 5), "-1 -1 0 -1 -1 -1\n"}, " ")
	}
	const grid = "traces: [{file: t.swf}]\nshares: [0.3, 1]\nstrategies: [noX, slurm, easy]\nseeds: [1, 2]\n"
	run := func(processors int) map[string]string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		t.Chdir(t.TempDir())
		for name, text := range map[string]string{"t.swf": trace, "grid.yaml": grid} {
			must.OK(t, os.WriteFile(name, []byte(text), 0o600))
		}
		printed := map[string]string{}
		for _, args := range []string{
			"run --evolving=0.5 --strategy=2X --beside=all --report=run.html --format=json t.swf",
			"baseline --scheduler=conservative -o conservative.swf t.swf", "trace stat t.swf", "sweep --workers=" + strconv.Itoa(processors) + " -o cells grid.yaml",
		} {
			var out, errs bytes.Buffer
			if status := evosim.Run(t.Context(), newCommand(), strings.Fields(args), strings.NewReader(""), &out, &errs); status != 0 {
				t.Fatalf("%s: %d: %s", args, status, errs.String())
			}
			printed[strings.Replace(args, "="+strconv.Itoa(processors)+" ", " ", 1)] = out.String()
		}
		files, err := filepath.Glob("*/*")
		must.OK(t, err)
		for _, name := range append(files, "run.html", "conservative.swf") {
			text := must.Read(t, name)
			printed[name] = string(text)
		}
		return printed
	}
	one, many := run(1), run(7)
	if len(one) != len(many) || len(one) < 15 {
		t.Fatalf("%d outputs on one processor, %d on seven", len(one), len(many))
	}
	for name, text := range one {
		if many[name] != text || text == "" {
			t.Errorf("%s differs:\n%.2000s\nand\n%.2000s", name, text, many[name])
		}
	}
}
