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

	"github.com/tilth-dev/tilth/internal/reload"
)

// ClientConfig names the files of who calls a tracker.
type ClientConfig struct {
	// CA has the authorities that the tracker's certificate is checked against; SystemRoots = those of the system.
	CA string
	// Cert and Key stand for the caller; empty = nothing does.
	Cert, Key string
}

// NewClient returns the caller's side of TLS, of files that are read again when they change. They have to be good now.
func NewClient(cfg ClientConfig, log *slog.Logger) (credentials.TransportCredentials, error) {
	files, err := reload.New(log, func() (*tls.Config, error) { return cfg.read() }, files(cfg.CA, cfg.Cert, cfg.Key)...)
	if err != nil {
		return nil, err
	}
	return &client{TransportCredentials: credentials.NewTLS(files.Get()), files: files}, nil
}

// Config is the caller's side of TLS, of the files as they are now.
func (c ClientConfig) Config() (*tls.Config, error) { return c.read() }

func (c ClientConfig) read() (*tls.Config, error) {
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

// client makes each handshake with the files as they are then.
type client struct {
	credentials.TransportCredentials
	files *reload.Files[*tls.Config]
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *client) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.files.Get()).ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (c *client) Clone() credentials.TransportCredentials {
	return &client{TransportCredentials: c.TransportCredentials.Clone(), files: c.files}
}

// NewPinned returns the caller's side of TLS towards peers that show one of some certificates, known by their SHA-256
// from a source that is trusted: their names and authorities do not matter.
func NewPinned(pins func() [][]byte) credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // the pins are checked instead
		VerifyConnection: func(s tls.ConnectionState) error {
			shown := sha256.Sum256(s.PeerCertificates[0].Raw)
			if !slices.ContainsFunc(pins(), func(pin []byte) bool { return bytes.Equal(pin, shown[:]) }) {
				return errors.New("the peer shows a certificate that no tracker of the database has")
			}
			return nil
		},
	})
}
