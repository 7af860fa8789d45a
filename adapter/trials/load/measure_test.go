package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequests(t *testing.T) {
	got := parseRequests(`Remote Procedure Call statistics by message type
	REQUEST_PARTITION_INFO                  ( 2009) count:5      ave_time:107    total_time:538
	REQUEST_JOB_INFO                        ( 2003) count:12     ave_time:21000  total_time:252000

Remote Procedure Call statistics by user
	root            (       0) count:17     ave_time:1      total_time:17
`)
	want := []rpc{{"REQUEST_JOB_INFO", 12, 0.252}, {"REQUEST_PARTITION_INFO", 5, 0.000538}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rpc{})); diff != "" {
		t.Error(diff)
	}
}
