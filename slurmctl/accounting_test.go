package slurmctl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestAccounting: jobs with and without what they may lack, steps, and what is wrong with a line.
func TestAccounting(t *testing.T) {
	const text = `JobIDRaw|Submit|Start|End|Elapsed|TimelimitRaw|NNodes|AllocCPUS|User|State|JobName
100|2026-11-22T10:00:00|2026-11-22T10:00:05|2026-11-23T12:03:09|1-02:03:04|2880|3|12|ann|COMPLETED|a|b
100.batch|2026-11-22T10:00:05|2026-11-22T10:00:05|2026-11-23T12:03:09|1-02:03:04||1|4||COMPLETED|batch
101|2026-11-22T10:01:00|None|2026-11-22T10:02:00|00:00:00|UNLIMITED|1|0|bob|CANCELLED by 1000|c
102|yesterday|Unknown|Unknown|00:00:00|Partition_Limit|1|0|bob|PENDING|c
103|2026-11-22T10:01:00|short
104_7|1795341660|1795341670|Unknown|10:01|5|2|2|bob|RUNNING|c
`
	if !IsAccounting([]byte(text)) || IsAccounting([]byte("1 2 3\n")) {
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
			var wrong *AccountingError
			if !errors.As(err, &wrong) {
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
	if _, err := NewAccountingReader(strings.NewReader("JobID|User\n1|x\n")).Next(); err == nil || !strings.Contains(err.Error(), "there is no column Submit; print it: sacct -P") {
		t.Errorf("got %v", err)
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
