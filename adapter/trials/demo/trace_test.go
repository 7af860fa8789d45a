package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const goodTrace = `begin 1000000
nodes 1 first 1100000 1300000 0 n2
nodes 1 last 10100000 10300000 0 n2
next 2 11000000 11400000
nodes 2 first 11400000 11600000 0 n3 n1 n2
nodes 2 last 20100000 20300000 0 n1 n2 n3
end 21400000
`

func TestParseTrace(t *testing.T) {
	got, err := parseTrace(goodTrace)
	if err != nil {
		t.Fatal(err)
	}
	at := func(us int64) time.Time { return time.UnixMicro(us) }
	three := []string{"n1", "n2", "n3"}
	want := trace{begin: at(1e6), end: at(21.4e6), steps: []traceStep{
		{began: at(1e6), first: answer{at(1.3e6), 0, []string{"n2"}}, last: answer{at(10.3e6), 0, []string{"n2"}}},
		{called: at(11e6), began: at(11.4e6), first: answer{at(11.6e6), 0, three}, last: answer{at(20.3e6), 0, three}},
	}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(trace{}, traceStep{}, answer{})); d != "" {
		t.Error(d)
	}
	if got, want := got.nodeSeconds(), 10.4+3*10.0; got != want {
		t.Errorf("%v node-seconds, want %v", got, want)
	}
}

func TestParseTraceRefuses(t *testing.T) {
	for _, text := range []string{
		"what", "begin", "begin x", "begin 1 2", "end", "nodes 1 first 1 2 0 n1", "next 2 1 2",
		"begin 1\nnext 3 1 2", "begin 1\nnodes 2 first 1 2 0", "begin 1\nnodes 1 first 1 2", "begin 1\n\n",
	} {
		if _, err := parseTrace(text); err == nil {
			t.Errorf("%q was taken for a trace", text)
		}
	}
}

func TestReadTraceOfAJobThatNeverRan(t *testing.T) {
	if _, err := readTrace(t.TempDir() + "/none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
