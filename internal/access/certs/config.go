package certs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// ServerConfig names the TLS files of a tracker. Cert and Key are required.
type ServerConfig struct {
	Cert, Key string
	// ClientCA has the authorities of client certificates; empty = client certificates are not accepted.
	ClientCA string
	// RequireClient refuses connections without a client certificate.
	RequireClient bool
}

// Server is the TLS configuration of a tracker. Its files are read again when they change, for new connections.
type Server struct {
	files *filesystem.Reloaded[*tls.Config]
}

// NewServer reads the files, which must be valid now.
func NewServer(cfg ServerConfig, log *slog.Logger) (*Server, error) {
	files, err := filesystem.Reload(log, cfg.read, files(cfg.Cert, cfg.Key, cfg.ClientCA)...)
	if err != nil {
		return nil, err
	}
	return &Server{files}, nil
}

func (c ServerConfig) read() (*tls.Config, error) {
	pair, err := readPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	// A resumed session would rely on the trust of the original handshake.
	out := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*pair}, SessionTicketsDisabled: true}
	if c.ClientCA == "" {
		return out, nil
	}
	if out.ClientCAs, err = readPool(c.ClientCA); err != nil {
		return nil, err
	}
	out.ClientAuth = tls.VerifyClientCertIfGiven
	if c.RequireClient {
		out.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return out, nil
}

// NotAfter returns when the certificate expires.
func (s *Server) NotAfter() time.Time { return s.files.Get().Certificates[0].Leaf.NotAfter }

// Digest returns the SHA-256 digest of the certificate.
func (s *Server) Digest() []byte {
	sum := sha256.Sum256(s.files.Get().Certificates[0].Leaf.Raw)
	return sum[:]
}

// Config returns the configuration of a listener with the given protocols (h2, http/1.1).
func (s *Server) Config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			current := s.files.Get().Clone()
			current.NextProtos = protocols
			return current, nil
		},
	}
}

// ClientConfig names the TLS files of a client of the tracker.
type ClientConfig struct {
	// CA has the authorities that sign the tracker's certificate; SystemRoots = the system's.
	CA string
	// Cert and Key identify the caller; empty = no client certificate.
	Cert, Key string
}

// NewClient returns the client's TLS credentials. The files must be valid now, and are read again when they change.
func NewClient(cfg ClientConfig, log *slog.Logger) (credentials.TransportCredentials, error) {
	files, err := filesystem.Reload(log, cfg.Config, files(cfg.CA, cfg.Cert, cfg.Key)...)
	if err != nil {
		return nil, err
	}
	return &client{TransportCredentials: credentials.NewTLS(files.Get()), files: files}, nil
}

// Config returns the TLS configuration of the current files.
func (c ClientConfig) Config() (*tls.Config, error) {
	if c.CA == "" {
		return nil, errors.New("a certificate is for TLS: name the tracker's authorities with --tls-ca too")
	}
	pool, err := readPool(c.CA)
	if err != nil {
		return nil, err
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if c.Cert == "" && c.Key == "" {
		return out, nil
	}
	pair, err := readPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	out.Certificates = []tls.Certificate{*pair}
	return out, nil
}

// client uses the current files in each handshake.
type client struct {
	credentials.TransportCredentials
	files *filesystem.Reloaded[*tls.Config]
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *client) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.files.Get()).ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (c *client) Clone() credentials.TransportCredentials {
	return &client{TransportCredentials: c.TransportCredentials.Clone(), files: c.files}
}

// NewPinned returns TLS credentials that accept exactly the certificates whose SHA-256 digests pins returns. Names and
// authorities are ignored, so the digests must come from a trusted source.
func NewPinned(pins func() [][]byte) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // pins are verified instead
		VerifyConnection: func(s tls.ConnectionState) error {
			shown := sha256.Sum256(s.PeerCertificates[0].Raw)
			if !slices.ContainsFunc(pins(), func(pin []byte) bool { return bytes.Equal(pin, shown[:]) }) {
				return errors.New("the peer shows a certificate that no tracker of the database has")
			}
			return nil
		},
	})
}

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
