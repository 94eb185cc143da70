package chaos

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/tracker"
)

// Names in a folder of secrets.
const (
	authorityName   = "ca.crt"
	certificateName = "tracker.crt"
	keyName         = "tracker.key"
	tokensName      = "tokens.json"
	agentToken      = "agent.token"
	clientToken     = "client.token"
)

// makeSecrets creates the secrets of a closed farm on this machine: the tracker's certificate, and tokens for agents
// and client.
func makeSecrets(dir string) error {
	if _, err := (certs.Order{Hosts: []string{"tracker.test"}, Lifetime: 24 * time.Hour}).Make(dir, time.Now()); err != nil {
		return err
	}
	for name, role := range map[string]access.Role{agentToken: access.Agent, clientToken: access.Client} {
		text, _, err := access.CreateToken(filepath.Join(dir, tokensName), access.TokenRequest{Name: string(role), Role: role}, time.Now())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// readSecrets returns a tracker's security settings.
func readSecrets(dir string, log *slog.Logger) (s tracker.Security, err error) {
	var err1, err2 error
	s.TLS, err1 = certs.NewServer(serverSide(dir), log)
	s.Tokens, err2 = access.OpenTokens(filepath.Join(dir, tokensName), log, func(access.TokenChange) {})
	return s, errors.Join(err1, err2)
}

func serverSide(dir string) certs.ServerConfig {
	return certs.ServerConfig{Cert: filepath.Join(dir, certificateName), Key: filepath.Join(dir, keyName)}
}

// asClient returns the dial options for calls with the client's token.
func asClient(dir string) ([]grpc.DialOption, error) {
	proof := certs.Proof{TLS: certs.ClientConfig{CA: filepath.Join(dir, authorityName)}, TokenFile: filepath.Join(dir, clientToken)}
	return proof.DialOptions("", quiet)
}

// asNobody returns the dial options of a relay, which forwards the credentials of others.
func asNobody(dir string) ([]grpc.DialOption, error) {
	return certs.Proof{TLS: certs.ClientConfig{CA: filepath.Join(dir, authorityName)}}.DialOptions("", quiet)
}

// encrypted returns the tracker's TLS option.
func encrypted(dir string) (grpc.ServerOption, error) {
	s, err := certs.NewServer(serverSide(dir), quiet)
	if err != nil {
		return nil, err
	}
	return grpc.Creds(credentials.NewTLS(s.Config("h2"))), nil
}
