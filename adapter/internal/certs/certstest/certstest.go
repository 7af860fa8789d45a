// Package certstest makes certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Write writes cert and key into a folder: a certificate that has signed itself, with this serial number, for the host or IP,
// which expires then. It returns the two files.
func Write(t testing.TB, dir, host string, serial int64, expires time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().AddDate(0, -3, 0), NotAfter: expires, IsCA: true, BasicConstraintsValid: true}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(serial, 0) // versions that follow each other at once must differ
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Await waits until a server shows the certificate with this serial number.
func Await(t testing.TB, address string, serial int64) {
	t.Helper()
	for range 1000 {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		got := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		conn.Close()
		if got == serial {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s never showed certificate %d", address, serial)
}
