package strategy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/evoslurm/evoslurm/plugins/strategypb"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestMutualTLS checks that a plugin, in Go or Python, answers only the process that started it,
// whatever other processes can reach its socket.
func TestMutualTLS(t *testing.T) {
	klein := filepath.Join(t.TempDir(), "klein")
	if out, err := exec.Command("go", "build", "-o", klein, "../cmd/klein").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asap, err := filepath.Abs("../python/asap")
	must.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, path := range []string{klein, asap} {
		c, err := Start(Launch{Command: exec.Command(path)})
		must.OK(t, err)
		defer c.Close()
		if _, err := c.Describe(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for name, with := range map[string]credentials.TransportCredentials{
			"no TLS":                insecure.NewCredentials(),
			"no certificate":        credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}),
			"another's certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{stranger(t)}}),
		} {
			conn, err := grpc.NewClient("unix:"+c.client.ReattachConfig().Addr.String(), grpc.WithTransportCredentials(with), grpc.WithAuthority("localhost"))
			must.OK(t, err)
			d, err := pb.NewStrategyClient(conn).Describe(ctx, &pb.DescribeRequest{})
			if err == nil || ctx.Err() != nil {
				t.Errorf("%s answers a caller with %s: %v, %v", filepath.Base(path), name, d, err)
			}
			conn.Close()
		}
		if _, err := c.Describe(ctx, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
}

// stranger returns another party's certificate.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must.OK(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
