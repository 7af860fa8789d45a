package slurmtest

import (
	"testing"
	"time"
)

func TestAccounting(t *testing.T) {
	t0 := time.Now()
	c := Start(t, Options{Accounting: true, PermitJobExpansion: true})
	out, err := c.Run(t.Context(), Root, "sacctmgr", "-n", "-P", "show", "assoc")
	t.Log(out, err)
	t.Logf("booted in %v", time.Since(t0))
}
