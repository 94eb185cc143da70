package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// SystemRoots is used in place of a file name for the authorities of the system.
const SystemRoots = "system"

// readPair reads a certificate with its chain, and its private key.
func readPair(certFile, keyFile string) (*tls.Certificate, error) {
	if certFile == "" || keyFile == "" {
		return nil, errors.New("a certificate and its key go together: give both --tls-cert and --tls-key")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return &pair, nil
}

// readPool reads a pool of authorities.
func readPool(file string) (*x509.CertPool, error) {
	if file == SystemRoots {
		return x509.SystemCertPool()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM format", file)
	}
	return pool, nil
}

// files returns the names that are not empty.
func files(names ...string) (out []string) {
	for _, n := range names {
		if n != "" && n != SystemRoots {
			out = append(out, n)
		}
	}
	return out
}
