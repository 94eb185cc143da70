package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"time"

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
	var pool *x509.CertPool
	if pool, err = readPool(c.ClientCA); err != nil {
		return nil, err
	}
	out.ClientCAs, out.ClientAuth = pool, tls.VerifyClientCertIfGiven
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
