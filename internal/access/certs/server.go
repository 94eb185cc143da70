package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/tilth-dev/tilth/internal/reload"
)

// ServerConfig names a tracker's files. Cert and Key are required.
type ServerConfig struct {
	Cert, Key string
	// ClientCA has the authorities whose client certificates stand for identities; empty = none do.
	ClientCA string
	// RequireClient refuses connections without a client certificate.
	RequireClient bool
}

// Server is the tracker's side of TLS, of files that are read again when they change: connections from then on use the
// new ones.
type Server struct{ files *reload.Files[*tls.Config] }

// NewServer reads the files, which have to be good now.
func NewServer(cfg ServerConfig, log *slog.Logger) (*Server, error) {
	files, err := reload.New(log, func() (*tls.Config, error) { return cfg.read() }, files(cfg.Cert, cfg.Key, cfg.ClientCA)...)
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
	// A resumed session would go by what was trusted when it began.
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

// NotAfter is when the certificate expires.
func (s *Server) NotAfter() time.Time { return s.files.Get().Certificates[0].Leaf.NotAfter }

// Digest is the SHA-256 of the certificate.
func (s *Server) Digest() []byte {
	sum := sha256.Sum256(s.files.Get().Certificates[0].Leaf.Raw)
	return sum[:]
}

// Config is the configuration of a listener that speaks the given protocols (h2, http/1.1).
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
