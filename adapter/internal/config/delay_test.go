package config

import (
	"testing"
	"time"
)

// TestDelays checks that the smallest budget for one of a job's partitions or its QOS counts,
// otherwise the site's.
func TestDelays(t *testing.T) {
	c := Default()
	c.MaxDelay, c.MaxDelays = time.Hour, []string{"partition:debug=5m", "partition:long=10h", "qos:urgent=0s"}
	d, err := c.Delays()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		partitions, qos string
		want            time.Duration
	}{
		{"main", "normal", time.Hour}, {"debug", "normal", 5 * time.Minute}, {"long", "normal", 10 * time.Hour},
		{"long,debug", "", 5 * time.Minute}, {"long,main", "", 10 * time.Hour}, {"long", "urgent", 0},
	} {
		if got := d.Of(w.partitions, w.qos); got != w.want {
			t.Errorf("partitions %s, QOS %s: %v, want %v", w.partitions, w.qos, got, w.want)
		}
	}
	for _, bad := range []string{"debug=5m", "partition:=5m", "partition:debug", "partition:debug=5", "qos:a=-1m", "user:a=1m"} {
		if c.MaxDelays = []string{bad}; c.Validate() == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
