package certs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"

	"google.golang.org/grpc/credentials"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

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
