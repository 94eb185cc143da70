// This file implements the caller's side of authentication: it verifies the tracker and presents the caller's
// credentials.

package certs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Proof names the credential files of a caller. The zero value is an anonymous, unencrypted connection.
type Proof struct {
	// TLS configures encryption; without a CA the connection is not encrypted.
	TLS ClientConfig
	// TokenFile contains a bearer token; empty = none. It is read again when it changes.
	TokenFile string
}

// DialOptions returns the options for connections to the tracker at addr: host:port, unix:PATH, or several separated
// by commas. Tokens are sent unencrypted only within this machine.
func (p Proof) DialOptions(addr string, log *slog.Logger) ([]grpc.DialOption, error) {
	var options []grpc.DialOption
	encrypted := p.TLS != ClientConfig{}
	if encrypted {
		side, err := NewClient(p.TLS, log)
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.WithTransportCredentials(side))
	}
	if p.TokenFile == "" {
		return options, nil
	}
	if !encrypted && !IsLocal(addr) {
		return nil, fmt.Errorf("a token would be sent to %s in the clear: name the tracker's authorities with --tls-ca, or reach it through a tunnel", addr)
	}
	t, err := openToken(p.TokenFile, log)
	if err != nil {
		return nil, err
	}
	return append(options, grpc.WithPerRPCCredentials(t)), nil
}

// IsLocal reports whether an address, or every address of a comma-separated list, is on this machine.
func IsLocal(addr string) bool {
	return !slices.ContainsFunc(wire.Addresses(addr), func(one string) bool { return !local(one) })
}

func local(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// token adds the bearer token to every call.
type token struct{ files *filesystem.Reloaded[string] }

var _ credentials.PerRPCCredentials = token{}

func openToken(path string, log *slog.Logger) (token, error) {
	files, err := filesystem.Reload(log, func() (string, error) { return readToken(path) }, path)
	return token{files}, err
}

func readToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	text := strings.TrimSpace(string(b))
	switch {
	case text == "":
		return "", fmt.Errorf("token file %s is empty: 'tilth tracker token create' makes a token", path)
	case len(text) > access.MaxTokenBytes || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("token file " + path + " does not hold a token: 'tilth tracker token create' makes one")
	}
	return text, nil
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + t.files.Get()}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. It returns false because DialOptions has checked
// the transport.
func (t token) RequireTransportSecurity() bool { return false }
