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

// TestTroubleAhead checks that the end of a certificate is warned of for the 30 days before it, and not before.
func TestTroubleAhead(t *testing.T) {
	dir, day := t.TempDir(), 24*time.Hour
	f := &Files{Certificate: dir + "/cert", Key: dir + "/key"}
	end := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	certstest.Write(t, dir, "head", 1, end)
	for _, c := range []struct {
		left time.Duration
		want string
	}{
		{31 * day, ""}, {30 * day, ""}, {30*day - time.Second, "expires on 2027-03-01, in 29 days: renew it"}, {29 * day, "in 29 days"}, {day, "in 1 days"},
		{time.Second, "in 0 days"}, {0, "expired on 2027-03-01: renew it"}, {-day, "expired on 2027-03-01"},
	} {
		if err := f.Trouble(end.Add(-c.left)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v before the end: %v; want %q", c.left, err, c.want)
		}
	}
}

// TestClientRenewed checks that a client shows the certificate that its files have now.
func TestClientRenewed(t *testing.T) {
	dir, year := t.TempDir(), time.Now().AddDate(1, 0, 0)
	c := Client{}
	c.Certificate, c.Key = certstest.Write(t, dir, "node", 1, year)
	cfg, err := c.Config()
	must.OK(t, err)
	for serial := range int64(2) {
		certstest.Write(t, dir, "node", 1+serial, year)
		pair, err := cfg.GetClientCertificate(nil)
		must.OK(t, err)
		if got, ends := pair.Leaf.SerialNumber.Int64(), c.Expires(); got != 1+serial || ends == nil || !ends.Equal(pair.Leaf.NotAfter) {
			t.Errorf("it shows number %d, which expires %v; want %d, %v", got, ends, 1+serial, pair.Leaf.NotAfter)
		}
	}
	must.OK(t, os.Remove(c.Key))
	if _, err := c.Config(); err == nil || !strings.Contains(err.Error(), "tls.certificate: ") {
		t.Errorf("without the key: %v", err)
	}
	if ends := c.Expires(); ends != nil {
		t.Errorf("without the key: expires %v", ends)
	}
}
