package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/evoslurm/evoslurm/adapter/internal/certs/certstest"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
)

// TestWatch checks that the log has a warning a day in the 30 days before a certificate expires, and goes on after that.
func TestWatch(t *testing.T) {
	dir, day := t.TempDir(), 24*time.Hour
	synctest.Test(t, func(t *testing.T) {
		var web config.Web
		web.Certificate, web.Key = certstest.Write(t, dir, "head", 1, time.Now().Add(31*day))
		log, hook := test.NewNullLogger()
		log.SetOutput(io.Discard)
		ctx, stop := context.WithCancel(t.Context())
		go certificates(config.Config{Web: web}).watch(ctx, log)
		warned := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := hook.AllEntries(); len(got) != want || want > 0 && hook.LastEntry().Level != logrus.WarnLevel {
				t.Errorf("%d entries, want %d warnings: %v", len(got), want, hook.LastEntry())
			}
			hook.Reset()
		}
		warned(day, 0)
		warned(2*time.Minute, 1)
		warned(29*day, 29)
		warned(3*day, 3) // it has expired
		stop()
	})
}
