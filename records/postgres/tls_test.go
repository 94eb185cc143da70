package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/records/postgres"
)

// authority is a CA for server certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.crt"), certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	var text []byte
	text, a.key = a.sign(t, a.certificate)
	if err := os.WriteFile(a.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign returns a certificate in PEM and its key.
func (a *authority) sign(t *testing.T, of *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := a.key
	if signer == nil { // self-signed
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, a.certificate, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// loopback returns a loopback address that no other test uses.
func loopback(t *testing.T) string {
	t.Helper()
	var b [3]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return net.IPv4(127, 1+b[0]%250, b[1], 1+b[2]%250).String()
}

// TestCertificateOfTheDatabaseIsVerified checks the CA and the name of the certificate. The error explains a
// mismatch in one line.
func TestCertificateOfTheDatabaseIsVerified(t *testing.T) {
	server, address := crashing(t)
	named, unnamed := loopback(t), loopback(t)
	right, wrong := newAuthority(t, "right"), newAuthority(t, "wrong")
	certificate, key := right.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(named)},
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(named+","+unnamed, certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		t.Fatal(err)
	}
	at := func(host string, by *authority) string {
		return strings.Replace(address, "host="+server.Folder(), fmt.Sprintf("host=%s&sslmode=verify-full&sslrootcert=%s", host, by.file), 1)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := postgres.Open(at(named, wrong), postgres.Options{}); !errors.As(err, &unknown) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "name its authority's certificate with PGSSLROOTCERT") {
		t.Errorf("with another authority: %v", err)
	}
	var name x509.HostnameError
	if _, err := postgres.Open(at(unnamed, right), postgres.Options{}); !errors.As(err, &name) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "valid for "+named+", not "+unnamed) {
		t.Errorf("by another name: %v", err)
	}
	for i, host := range []string{named, unnamed + "," + named} { // also if another server fails
		db := opened(t, at(host, right))
		if err := db.Commit(numbered(i + 1)).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n := stored(t, db); n != i+1 {
			t.Errorf("%d writes are stored", n)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err = postgres.Open(at(unnamed+","+loopback(t), wrong), postgres.Options{})
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), unnamed) < 2 {
		t.Errorf("two servers fail with %v", err)
	}
}
