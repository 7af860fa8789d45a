package slurmctl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// parse reads an output in one piece.
func (v view) parse(out string) ([]Job, error) { return v.parseInPieces(out, len(out)) }

// parseInPieces reads an output as it comes from a pipe.
func (v view) parseInPieces(out string, size int) ([]Job, error) {
	r := v.reading(nil)
	for b := []byte(out); len(b) > 0; {
		n := min(max(size, 1), len(b))
		_, _ = r.Write(b[:n])
		clear(b[:n]) // nothing may stay there
		b = b[n:]
	}
	return r.end()
}

// TestPieces checks that jobs are the same, and errors too, wherever the pipe cuts the output.
func TestPieces(t *testing.T) {
	for version, release := range releases {
		v, file := shortView(), "squeue-short-all.txt"
		if release >= longFormat {
			v, file = longView(release, nil), "squeue-long-all.txt"
		}
		v = v.withSep(recorded)
		out := read(t, version, file)
		want, err := v.parse(out)
		must.OK(t, err)
		for _, size := range []int{1, 2, 3, 5, 7, 64, 1000, 4096} {
			got, err := v.parseInPieces(out, size)
			must.OK(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s in pieces of %d: %s", version, size, diff)
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			cut := rapid.IntRange(1, len(out)-1).Draw(t, "cut")
			got, err := v.parseInPieces(out[:cut], rapid.IntRange(1, 500).Draw(t, "size"))
			if whole := strings.HasSuffix(out[:cut], recorded+"\n"); err == nil && (!whole || len(got) >= len(want)) {
				t.Errorf("cut at %d of %d: %d jobs, and no error", cut, len(out), len(got))
			} else if err != nil && got != nil {
				t.Errorf("cut at %d of %d: %d jobs beside %v", cut, len(out), len(got), err)
			}
		})
	}
}

// TestReadNumbers checks that the quick forms give what the complete ones give.
func TestReadNumbers(t *testing.T) {
	words := []string{"", "0", "7", "-1", "+3", "007", "12K", "2-4", "4294967295", "4294967296", "99999999999999999999", "N/A", "(null)", "None",
		"Unknown", "1:00", "10:00", "1:02:03", "2-03:04:05", "2-03", "2-03:04", "366-00:00:00", "367-00:00:00", "99999:00", "1:2:3:4", ":", "1:", "-1:00", "1-", "UNLIMITED",
		"INVALID", "1e9", "1700000000", "4294967296", "2026-11-27T01:02:03", "1.5", "-2147483645", " 1"}
	same := func(word, what string, got any, err error, want any, wantErr error) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) && wantErr == nil || (err == nil) != (wantErr == nil) {
			t.Errorf("%q as %s is %v, %v; want %v, %v", word, what, got, err, want, wantErr)
		}
	}
	for _, w := range words {
		b := []byte(w)
		id, err := readID(b)
		wantID, wantErr := parseID(w)
		same(w, "ID", id, err, wantID, wantErr)
		for _, bits := range []int{32, 64} {
			n, err := readNumber(b, bits)
			want, wantErr := strconv.ParseUint(w, 10, bits)
			same(w, "number", n, err, want, wantErr)
		}
		tasks, err := readTasks(b)
		wantTasks, wantErr := countTasks(w)
		same(w, "tasks", tasks, err, wantTasks, wantErr)
		count, err := readCount(b)
		wantCount, wantErr := parseCount(w)
		same(w, "count", count, err, wantCount, wantErr)
		d, err := readDuration(b)
		wantD, wantErr := parseDuration(w)
		same(w, "duration", d, err, wantD, wantErr)
		at, err := readTime(b)
		wantAt, wantErr := parseTime(w)
		same(w, "time", at, err, wantAt, wantErr)
		nice, err := readNice(b)
		wantNice, wantErr := strconv.Atoi(w)
		same(w, "nice", nice, err, wantNice, wantErr)
	}
}

// TestShared checks that a second reading shares texts and lists with the first, that what ended is dropped, and
// that nothing of squeue's output is kept.
func TestShared(t *testing.T) {
	v := shortView()
	first := []byte(v.print(queueOf(v, 40, 0)))
	r := v.reading(nil)
	_, _ = r.Write(first)
	before, err := r.end()
	must.OK(t, err)
	k := r.keep.done(len(before))
	r = v.reading(k)
	_, _ = r.Write([]byte(v.print(queueOf(v, 20, 10))))
	after, err := r.end()
	must.OK(t, err)
	at := func(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }
	for i, j := range after {
		old := before[i+10]
		if j.ID != old.ID || at(j.Partition) != at(old.Partition) || len(j.NodeList) > 0 && &j.NodeList[0] != &old.NodeList[0] {
			t.Errorf("job %d shares nothing with %d", j.ID, old.ID)
		}
		if begin := uintptr(unsafe.Pointer(&first[0])); at(old.Name) >= begin && at(old.Name) < begin+uintptr(len(first)) {
			t.Errorf("the name of %d lies in the output", j.ID)
		}
	}
	if left := r.keep.done(len(after)); left.oldLists != nil || len(left.lists) >= len(k.lists) {
		t.Errorf("%d lists of %d stay", len(left.lists), len(k.lists))
	}
}

// queueOf returns records of jobs in the view: one of four runs on a node of its own.
func queueOf(v view, jobs, from int) [][]string {
	all := make([][]string, jobs)
	for i := range jobs {
		id := strconv.Itoa(from + i + 1)
		value := map[string]string{"A": id, "i": id, "F": id, "K": "N/A", "j": "job-" + strconv.Itoa((from+i)/7), "u": "user" + strconv.Itoa((from+i)%200),
			"U": strconv.Itoa(1000 + (from+i)%200), "a": "acct" + strconv.Itoa((from+i)%90), "q": "normal", "P": "part" + strconv.Itoa((from+i)%50), "k": "(null)",
			"T": "PENDING", "r": "Priority", "Q": strconv.Itoa(100000 - i), "D": strconv.Itoa(1 + i%64), "C": strconv.Itoa(4 * (1 + i%64)), "c": "1", "z": "*:*:*",
			"m": "4000M", "l": "2:00:00", "V": "1764000000", "S": "N/A", "e": "N/A", "y": "0", "h": "OK", "E": "(null)", "f": "(null)", "v": "(null)", "B": "n/a"}
		if (from+i)%4 == 0 {
			value["T"], value["r"], value["N"], value["B"], value["S"], value["e"] = "RUNNING", "None", "n"+id, "n"+id, "1764000100", "1764007300"
		}
		for _, c := range v.columns {
			all[i] = append(all[i], value[c.letter])
		}
	}
	return all
}

// TestDamaged checks that what a broken squeue printed is no half of a queue.
func TestDamaged(t *testing.T) {
	v := shortView()
	good := v.print(queueOf(v, 3, 0))
	for name, out := range map[string]string{
		"cut":         good[:len(good)-30],
		"no newline":  good[:len(good)-1],
		"text behind": good + "slurmstepd: error\n",
		"text before": "squeue: error\n" + good,
		"a blank":     strings.Replace(good, "\n", "\n ", 1),
		"bad number":  strings.Replace(good, v.sep+"1764000000"+v.sep, v.sep+"soon"+v.sep, 1),
	} {
		if jobs, err := v.parse(out); err == nil || jobs != nil {
			t.Errorf("%s: %d jobs, %v", name, len(jobs), err)
		}
	}
}

// TestSqueueCutShort checks the same with a command that ends early, and one that fails after whole records.
func TestSqueueCutShort(t *testing.T) {
	for name, end := range map[string]string{"half a record": `printf '4'`, "exit status": `exit 1`, "killed": `kill -9 $$`} {
		dir := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(dir, "sinfo"), []byte("#!/bin/sh\necho slurm 22.05.8\n"), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, "squeue"), []byte("#!/bin/sh\n[ \"$1\" = --version ] && { echo slurm 22.05.8; exit; }\n"+squeueLine+end+"\n"), 0o755))
		c := Client{Dir: dir}
		jobs, err := c.Jobs(context.Background())
		if err == nil || jobs != nil {
			t.Errorf("%s: %d jobs, %v", name, len(jobs), err)
		}
	}
}

// squeueLine prints a record in the format of the environment, with 1 in each field.
const squeueLine = `printf '%s' "$SQUEUE_FORMAT" | sed 's/%[A-Za-z]/1/g'; echo
`

// BenchmarkReadJobs reads 100,000 jobs from a pipe, as they come: what it costs beside the command itself. "top" is
// how much higher the heap is at most, with the last reading still in use.
func BenchmarkReadJobs(b *testing.B) {
	const jobs = 100_000
	file := filepath.Join(b.TempDir(), "out")
	v := shortView()
	must.OK(b, os.WriteFile(file, []byte(strings.ReplaceAll(v.print(queueOf(v, jobs, 0)), v.sep, "<recordedABC>")), 0o600))
	v = v.withSep("<recordedABC>")
	c := &Client{Dir: b.TempDir()}
	must.OK(b, os.WriteFile(filepath.Join(c.Dir, "squeue"), []byte("#!/bin/sh\nexec cat "+file+"\n"), 0o755))
	var k *kept
	var last []Job
	readOnce := func() {
		r := v.reading(k)
		all, err := c.squeueInto(context.Background(), r)
		must.OK(b, err)
		if len(all) != jobs {
			b.Fatal(len(all))
		}
		k, last = r.keep.done(jobs), all
	}
	readOnce()
	var top uint64
	cpu := cpuTime()
	n := 0
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		base, most, stop, stopped := m.HeapAlloc, uint64(0), make(chan bool), make(chan bool)
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapAlloc)
				}
			}
		}()
		b.StartTimer()
		readOnce()
		b.StopTimer()
		runtime.ReadMemStats(&m)
		close(stop)
		<-stopped
		top = max(top, max(most, m.HeapAlloc)-base)
		n++
		b.StartTimer()
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(n)/1e6, "cpu-ms/op")
	b.ReportMetric(float64(top)/(1<<20), "top-MiB")
	runtime.KeepAlive(last)
}

// cpuTime returns the processor time of this process, without its commands.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
