package certs

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/certs/certstest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// serialOf returns the serial number of the present certificate.
func serialOf(t *testing.T, f *Files) int64 {
	t.Helper()
	pair, err := f.Current()
	must.OK(t, err)
	block, _ := pem.Decode(pair.Certificate)
	c, err := x509.ParseCertificate(block.Bytes)
	must.OK(t, err)
	return c.SerialNumber.Int64()
}

// TestFiles checks that a renewal counts at once, and that halves of one never do.
func TestFiles(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	f := &Files{Certificate: dir + "/cert", Key: dir + "/key"}
	serial := func() int64 { return serialOf(t, f) }
	trouble := func(want string) {
		t.Helper()
		if err := f.Trouble(now); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("trouble: %v; want %q", err, want)
		}
	}
	if _, err := f.Current(); err == nil {
		t.Error("there are no files")
	}
	certstest.Write(t, dir, "head", 1, now.Add(40*24*time.Hour))
	if n := serial(); n != 1 {
		t.Errorf("number %d", n)
	}
	trouble("")
	old := must.Read(t, f.Key)
	certstest.Write(t, dir, "head", 2, now.Add(20*24*time.Hour+time.Hour))
	renewed := must.Read(t, f.Key)
	for _, half := range [][]byte{old, renewed[:50], nil} {
		must.OK(t, os.WriteFile(f.Key, half, 0o600))
		if n := serial(); n != 1 {
			t.Errorf("half of a renewal: number %d", n)
		}
		trouble("the one before stays")
	}
	must.OK(t, os.WriteFile(f.Key, renewed, 0o600))
	if n := serial(); n != 2 {
		t.Errorf("renewed: number %d", n)
	}
	trouble("in 20 days: renew it")
	certstest.Write(t, dir, "head", 3, now.Add(-time.Hour))
	trouble("expired on")
	must.OK(t, os.Remove(f.Certificate))
	if n := serial(); n != 3 {
		t.Errorf("without the file: number %d", n)
	}
	trouble("no such file")
}
