// This file implements the caller's side of authentication: it verifies the tracker and presents the caller's
// credentials.

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/wire"
)

// rolePrefix begins the organisation of a certificate's subject that contains the role: O=tilth:agent.
const rolePrefix = "tilth:"

// Identity returns the identity of a verified client certificate: its common name, and the role from its organisation.
// It returns false for a certificate without such an organisation, which is no credential, and an error for an invalid
// or expired one.
func Identity(c *x509.Certificate, now time.Time) (access.Identity, bool, error) {
	var roles []access.Role
	for _, o := range c.Subject.Organization {
		text, is := strings.CutPrefix(o, rolePrefix)
		if !is {
			continue
		}
		role, err := access.ParseRole(text)
		if err != nil {
			return access.Identity{}, false, fmt.Errorf("certificate of %q: %w", c.Subject.CommonName, err)
		}
		roles = append(roles, role)
	}
	if len(roles) == 0 {
		return access.Identity{}, false, nil
	}
	if len(roles) > 1 {
		return access.Identity{}, false, fmt.Errorf("certificate of %q: it tells %d roles, want one", c.Subject.CommonName, len(roles))
	}
	if err := access.CheckName(c.Subject.CommonName); err != nil {
		return access.Identity{}, false, fmt.Errorf("certificate: %w", err)
	}
	// The handshake has checked this, but connections may outlive the certificate.
	if now.After(c.NotAfter) {
		return access.Identity{}, false, errors.New("the certificate has expired")
	}
	return access.Identity{Name: c.Subject.CommonName, Role: roles[0], Proof: "certificate " + c.SerialNumber.Text(16)}, true, nil
}

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
