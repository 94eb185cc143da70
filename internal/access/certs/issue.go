package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Default lifetimes.
const (
	CALifetime   = 10 * 365 * 24 * time.Hour
	LeafLifetime = 365 * 24 * time.Hour
)

// Authority signs a farm's certificates. Its key is stored in a separate file, which is needed only for signing.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority that is valid from one minute ago, since the clocks of boards are inexact.
func NewAuthority(now time.Time, lifetime time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "tilth farm " + now.UTC().Format("2006-01-02")},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	cert, err := sign(template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key}, nil
}

// ReadAuthority reads the files that Authority.Write has written.
func ReadAuthority(certFile, keyFile string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("authority %s, %s: %w", certFile, keyFile, err)
	}
	key, is := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !is || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("authority %s: it was not made by 'tilth tracker certs'", certFile)
	}
	return &Authority{cert: pair.Leaf, key: key}, nil
}

// Write writes the certificate and the key to new files.
func (a *Authority) Write(certFile, keyFile string) error {
	return writePair(certFile, keyFile, a.cert.Raw, a.key)
}

// Server writes a certificate and its key for a tracker that is reachable at hosts, a list of names and addresses.
func (a *Authority) Server(certFile, keyFile string, hosts []string, now time.Time, lifetime time.Duration) error {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "tilth tracker"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if h != "" {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if len(template.IPAddresses)+len(template.DNSNames) == 0 {
		return errors.New("a tracker's certificate needs at least one host name or address")
	}
	return a.issue(certFile, keyFile, template, now, lifetime)
}

// Client writes a client certificate and its key for an identity.
func (a *Authority) Client(certFile, keyFile, name string, role access.Role, now time.Time, lifetime time.Duration) error {
	if err := access.CheckName(name); err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: []string{rolePrefix + string(role)}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	return a.issue(certFile, keyFile, template, now, lifetime)
}

func (a *Authority) issue(certFile, keyFile string, template *x509.Certificate, now time.Time, lifetime time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(lifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	cert, err := sign(template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	return writePair(certFile, keyFile, cert.Raw, key)
}

func sign(template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// writePair writes the key first: a reader in between finds that certificate and key do not match, and uses the old
// pair.
func writePair(certFile, keyFile string, der []byte, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for _, file := range []string{certFile, keyFile} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	}
	err = filesystem.WritePrivateFile(keyFile, func(w io.Writer) error {
		return pem.Encode(w, &pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	})
	if err != nil {
		return err
	}
	return filesystem.WriteFile(certFile, func(w io.Writer) error {
		return pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	})
}

// Order lists the certificates to issue in a folder.
type Order struct {
	// Hosts are the names and addresses of the tracker, for which a server certificate is issued; empty = none. The
	// local host is included.
	Hosts []string
	// Clients maps the names of clients to their roles.
	Clients map[string]access.Role
	// Lifetime is the validity of each certificate.
	Lifetime time.Duration
}

// Make issues the certificates, and creates the authority if it does not exist. It returns the certificate files
// that it wrote; each key is stored beside its certificate.
func (o Order) Make(dir string, now time.Time) (made []string, err error) {
	a, fresh, err := authority(dir, now)
	if err != nil {
		return nil, err
	}
	if fresh {
		made = append(made, filepath.Join(dir, "ca.crt"))
	} else if len(o.Hosts)+len(o.Clients) == 0 {
		return nil, fmt.Errorf("%s already has an authority: choose what it signs with --host or --client", dir)
	}
	pair := func(name string) (string, string) {
		base := filepath.Join(dir, url.PathEscape(name))
		return base + ".crt", base + ".key"
	}
	if len(o.Hosts) > 0 {
		cert, key := pair("tracker")
		hosts := append([]string{"localhost", "127.0.0.1", "::1"}, o.Hosts...)
		if err := a.Server(cert, key, hosts, now, o.Lifetime); err != nil {
			return made, err
		}
		made = append(made, cert)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Clients)) {
		if name == "ca" || name == "tracker" {
			return made, fmt.Errorf("client %s: the files of that name are the farm's own: choose another name", name)
		}
		cert, key := pair(name)
		if err := a.Client(cert, key, name, o.Clients[name], now, o.Lifetime); err != nil {
			return made, err
		}
		made = append(made, cert)
	}
	return made, nil
}

// authority reads the folder's authority, or creates one.
func authority(dir string, now time.Time) (a *Authority, fresh bool, err error) {
	cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	_, certErr := os.Stat(cert)
	_, keyErr := os.Stat(key)
	switch {
	case certErr == nil && errors.Is(keyErr, fs.ErrNotExist):
		return nil, false, fmt.Errorf("authority %s: its key %s is missing: restore it, or name another folder with --dir", cert, key)
	case certErr == nil || keyErr == nil:
		a, err = ReadAuthority(cert, key)
		return a, false, err
	}
	if a, err = NewAuthority(now, CALifetime); err != nil {
		return nil, false, err
	}
	return a, true, a.Write(cert, key)
}
