package slurmctl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestAccounting reads jobs with and without optional values, steps, and invalid lines.
func TestAccounting(t *testing.T) {
	const text = `JobIDRaw|Submit|Start|End|Elapsed|TimelimitRaw|NNodes|AllocCPUS|User|State|JobName
100|2026-11-22T10:00:00|2026-11-22T10:00:05|2026-11-23T12:03:09|1-02:03:04|2880|3|12|ann|COMPLETED|a|b
100.batch|2026-11-22T10:00:05|2026-11-22T10:00:05|2026-11-23T12:03:09|1-02:03:04||1|4||COMPLETED|batch
101|2026-11-22T10:01:00|None|2026-11-22T10:02:00|00:00:00|UNLIMITED|1|0|bob|CANCELLED by 1000|c
102|yesterday|Unknown|Unknown|00:00:00|Partition_Limit|1|0|bob|PENDING|c
103|2026-11-22T10:01:00|short
104_7|1795341660|1795341670|Unknown|10:01|5|2|2|bob|RUNNING|c
`
	if !IsAccounting([]byte(text)) || IsAccounting([]byte("1 2 3\n")) || !AccountsNodes([]byte(text)) || AccountsNodes([]byte("JobID|NCPUS\n1|2\n")) {
		t.Error("not known by its beginning")
	}
	a := NewAccountingReader(strings.NewReader(text))
	var got []string
	for {
		j, err := a.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if _, ok := errors.AsType[*AccountingError](err); !ok {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("line %d: %v", a.Line(), err))
			continue
		}
		got = append(got, fmt.Sprint(j.ID, " ", j.Submit.Unix(), " ", j.Start.Sub(j.Submit) > -time.Hour, " ", j.Elapsed, " ", j.Limit, " ", j.Nodes, " ", j.CPUs, " ", j.User, " ", j.State))
	}
	want := []string{
		"100 1795341600 true 26h3m4s 48h0m0s 3 12 ann COMPLETED",
		"101 1795341660 false 0s -1ns 1 0 bob CANCELLED",
		`line 5: Submit: "yesterday"; want a time such as 2026-11-22T15:04:05`,
		"line 6: 3 columns, the first line has 11 (a name with a | in it? leave JobName out, or put it last)",
		"104 1795341660 true 10m1s 5m0s 2 2 bob RUNNING",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAccountingColumns checks that the reader requires the columns without which it would misread
// jobs.
func TestAccountingColumns(t *testing.T) {
	for text, want := range map[string]string{
		"JobID|User\n1|x\n":                                                                            "missing column Submit; print it: sacct -P",
		"JobID|Submit|State|ElapsedRaw\n1|x|x|1\n":                                                     "missing column NNodes; print it: sacct -P",
		"JobID|Submit|Start|State|NCPUS\n1|x|x|x|1\n":                                                  "missing column ElapsedRaw; print it: sacct -P",
		"JobID|Submit|State|ElapsedRaw|NCPUS\n7_1||||\n":                                               `JobID: "7_1": the number of an array's task, or of a component, is in column JobIDRaw; print that`,
		"JobID|Submit|State|ElapsedRaw|NCPUS\n7+1||||\n":                                               `JobID: "7+1": the number of`,
		"JobIDRaw|Submit|State|ElapsedRaw|NCPUS|TimelimitRaw\n7|2026-11-22T10:00:00|X|1|1|200000000\n": `TimelimitRaw: "200000000"; want a number`, // minutes: this is centuries
	} {
		if _, err := NewAccountingReader(strings.NewReader(text)).Next(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestAccountingResized joins the records of a job that changed its size, as sacct of 22.05 prints
// them.
func TestAccountingResized(t *testing.T) {
	const text = `JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|State
7|2026-11-23T13:25:24|2026-11-23T13:25:36|2026-11-23T13:25:45|9|2|1|RESIZING
8|2026-11-23T13:25:24|2026-11-23T13:25:31|2026-11-23T13:26:14|43|2|1|COMPLETED
9|2026-11-23T13:25:43|2026-11-23T13:25:45|short
10|2026-11-23T13:25:44|2026-11-23T13:25:44|2026-11-23T13:25:45|1|1|2|RESIZING
7|2026-11-23T13:25:45|2026-11-23T13:25:45|2026-11-23T13:25:50|5|2|3|RESIZING
10|2026-11-23T13:25:45|2026-11-23T13:25:45|Unknown|293|1|0|COMPLETED
7|2026-11-23T13:25:50|2026-11-23T13:25:50|2026-11-23T13:25:58|8|2|4|RESIZING
11|2026-11-23T13:25:51|2026-11-23T13:25:51|2026-11-23T13:25:55|4|2|4|RESIZING
7|2026-11-23T13:25:58|2026-11-23T13:25:58|2026-11-23T13:26:01|3|2|1|COMPLETED
`
	a := NewAccountingReader(strings.NewReader(text))
	var got []string
	for {
		j, err := a.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			got = append(got, fmt.Sprint(a.Line(), " ", err))
			continue
		}
		got = append(got, fmt.Sprint(a.Line(), " ", j.ID, j.Submit.Format(" 05 "), j.Start.Format("05 "), j.End.Format("05 "), j.Elapsed, " ", j.Nodes, " ", j.State))
	}
	want := []string{"2 7 24 36 01 25s 4 COMPLETED", "3 8 24 31 14 43s 1 COMPLETED", "4 4 columns, the first line has 8 (a name with a | in it? leave JobName out, or put it last)",
		"5 10 44 44 45 1s 2 COMPLETED", "9 11 51 51 55 4s 4 RESIZING"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzAccounting(f *testing.F) {
	f.Add("JobID|Submit|State|Elapsed|Timelimit\n7_1|2026-11-22T10:01:00|X|1-02:03:04|9:09\n7.0|a|b|c|d\n")
	f.Fuzz(func(t *testing.T, text string) {
		a := NewAccountingReader(strings.NewReader(text))
		for {
			j, err := a.Next()
			var wrong *AccountingError
			if err != nil && !errors.As(err, &wrong) {
				return
			}
			if err == nil && (j.ID < 0 || j.Elapsed < -1 || j.Nodes < -1) {
				t.Fatalf("%+v", j)
			}
		}
	})
}
