package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/tilth-dev/tilth/internal/access"
)

var quiet = slog.New(slog.DiscardHandler)

// pki is a CA with signed certificates in a folder.
type pki struct {
	testing.TB
	*Authority
	dir string
}

func newPKI(t testing.TB) *pki {
	t.Helper()
	a, err := NewAuthority(time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p := &pki{TB: t, Authority: a, dir: t.TempDir()}
	p.check(a.Write(p.path("ca.crt"), p.path("ca.key")))
	p.check(a.Server(p.path("server.crt"), p.path("server.key"), []string{"localhost", "127.0.0.1"}, time.Now(), time.Hour))
	p.check(a.Client(p.path("alice.crt"), p.path("alice.key"), "alice", access.Client, time.Now(), time.Hour))
	return p
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pki) server(require bool) *Server {
	p.Helper()
	s, err := NewServer(ServerConfig{
		Cert: p.path("server.crt"), Key: p.path("server.key"), ClientCA: p.path("ca.crt"), RequireClient: require,
	}, quiet)
	p.check(err)
	return s
}

// client returns the credentials of a client with the certificate of a name, or without one.
func (p *pki) client(name string) credentials.TransportCredentials {
	p.Helper()
	cfg := ClientConfig{CA: p.path("ca.crt")}
	if name != "" {
		cfg.Cert, cfg.Key = p.path(name+".crt"), p.path(name+".key")
	}
	c, err := NewClient(cfg, quiet)
	p.check(err)
	return c
}

// handshake connects server and client over TCP and returns the certificates that each received.
func (p *pki) handshake(s *Server, c credentials.TransportCredentials) (client, server []*x509.Certificate, err error) {
	p.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	p.check(err)
	defer lis.Close()
	type accepted struct {
		certs []*x509.Certificate
		err   error
	}
	done := make(chan accepted, 1)
	go func() {
		raw, err := lis.Accept()
		if err != nil {
			done <- accepted{err: err}
			return
		}
		defer raw.Close()
		conn := tls.Server(raw, s.Config("h2"))
		err = conn.Handshake()
		done <- accepted{conn.ConnectionState().PeerCertificates, err}
	}()
	raw, err := net.Dial("tcp", lis.Addr().String())
	p.check(err)
	defer raw.Close()
	_, info, clientErr := c.ClientHandshake(context.Background(), "localhost", raw)
	a := <-done
	if clientErr != nil {
		return nil, nil, clientErr
	}
	if a.err != nil {
		return nil, nil, a.err
	}
	return a.certs, info.(credentials.TLSInfo).State.PeerCertificates, nil
}

func TestCertificateStandsForAnIdentity(t *testing.T) {
	p := newPKI(t)
	seen, _, err := p.handshake(p.server(true), p.client("alice"))
	if err != nil {
		t.Fatal(err)
	}
	id, is, err := Identity(seen[0], time.Now())
	if err != nil || !is || id.Name != "alice" || id.Role != access.Client || !strings.HasPrefix(id.Proof, "certificate ") {
		t.Errorf("identity is %v, %v, %v", id, is, err)
	}
	if _, _, err := Identity(seen[0], time.Now().Add(2*time.Hour)); err == nil || err.Error() != "the certificate has expired" {
		t.Errorf("on a connection that outlasts it: %v", err)
	}
}

func TestIdentitiesOfCertificates(t *testing.T) {
	for name, c := range map[string]struct {
		subject pkix.Name
		is      bool
		want    string
	}{
		"another's":  {pkix.Name{CommonName: "alice", Organization: []string{"ACME"}}, false, ""},
		"unknown":    {pkix.Name{CommonName: "alice", Organization: []string{"tilth:root"}}, false, `certificate of "alice": role "root" is not one of read-only, client, agent, admin`},
		"two roles":  {pkix.Name{CommonName: "alice", Organization: []string{"tilth:agent", "tilth:admin"}}, false, `certificate of "alice": it tells 2 roles, want one`},
		"no name":    {pkix.Name{Organization: []string{"tilth:agent"}}, false, `certificate: name "" has 0 bytes: want 1 to 128`},
		"strange":    {pkix.Name{CommonName: "a\nb", Organization: []string{"tilth:agent"}}, false, `certificate: name "a\nb": want printable ASCII without blanks`},
		"one of two": {pkix.Name{CommonName: "b", Organization: []string{"ACME", "tilth:agent"}}, true, ""},
	} {
		cert := &x509.Certificate{Subject: c.subject, SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
		_, is, err := Identity(cert, time.Now())
		if text := message(err); is != c.is || text != c.want {
			t.Errorf("%s: %v, %q", name, is, text)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestStrangersDoNotGetThrough(t *testing.T) {
	p, other := newPKI(t), newPKI(t)
	if _, _, err := p.handshake(p.server(true), p.client("")); err == nil {
		t.Error("a client without a certificate got through")
	}
	if _, _, err := p.handshake(p.server(false), p.client("")); err != nil {
		t.Errorf("where certificates are not required: %v", err)
	}
	if _, _, err := other.handshake(p.server(false), other.client("")); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a tracker of another authority: %v", err)
	}
	impostor, err := NewClient(ClientConfig{CA: p.path("ca.crt"), Cert: other.path("alice.crt"), Key: other.path("alice.key")}, quiet)
	p.check(err)
	if _, _, err := p.handshake(p.server(false), impostor); err == nil {
		t.Error("a certificate of another authority got through")
	}
	// A client certificate is not accepted as a server's.
	posing, err := NewServer(ServerConfig{Cert: p.path("alice.crt"), Key: p.path("alice.key")}, quiet)
	p.check(err)
	if _, _, err := p.handshake(posing, p.client("")); err == nil {
		t.Error("a client posed as the tracker")
	}
}

func TestCertificatesAreReplacedWithoutARestart(t *testing.T) {
	p := newPKI(t)
	s, c := p.server(true), p.client("alice")
	clientBefore, serverBefore, err := p.handshake(s, c)
	p.check(err)
	p.check(p.Server(p.path("server.crt"), p.path("server.key"), []string{"localhost"}, time.Now(), time.Hour))
	p.check(p.Client(p.path("alice.crt"), p.path("alice.key"), "alice", access.Client, time.Now(), time.Hour))
	clientAfter, serverAfter, err := p.handshake(s, c)
	p.check(err)
	if clientBefore[0].Equal(clientAfter[0]) || serverBefore[0].Equal(serverAfter[0]) {
		t.Error("the old certificates are still used")
	}
	// Both sides change to another CA.
	next := newPKI(t)
	for _, name := range []string{"ca.crt", "server.crt", "server.key", "alice.crt", "alice.key"} {
		b, err := os.ReadFile(next.path(name))
		p.check(err)
		p.check(os.WriteFile(p.path(name)+".new", b, 0o600))
		p.check(os.Rename(p.path(name)+".new", p.path(name)))
	}
	if _, _, err := p.handshake(s, c); err != nil {
		t.Errorf("with the new authority: %v", err)
	}
	if _, _, err := next.handshake(s, next.client("")); err == nil {
		t.Error("a client without a certificate got through")
	}
}

func TestFilesThatDoNotFitAreRefused(t *testing.T) {
	p := newPKI(t)
	p.check(os.WriteFile(p.path("empty"), nil, 0o600))
	for name, c := range map[string]struct {
		cfg  ServerConfig
		want string
	}{
		"no key":      {ServerConfig{Cert: p.path("server.crt")}, "a certificate and its key go together: give both --tls-cert and --tls-key"},
		"another key": {ServerConfig{Cert: p.path("server.crt"), Key: p.path("alice.key")}, "private key does not match public key"},
		"no file":     {ServerConfig{Cert: p.path("none"), Key: p.path("none")}, "no such file"},
		"no CA":       {ServerConfig{Cert: p.path("server.crt"), Key: p.path("server.key"), ClientCA: p.path("empty")}, "empty has no certificate in PEM format"},
	} {
		if _, err := NewServer(c.cfg, quiet); !strings.Contains(message(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewClient(ClientConfig{Cert: p.path("alice.crt"), Key: p.path("alice.key")}, quiet); message(err) != "a certificate is for TLS: name the tracker's authorities with --tls-ca too" {
		t.Errorf("a client without authorities: %v", err)
	}
}

func TestAuthorityIsReadAgain(t *testing.T) {
	p := newPKI(t)
	a, err := ReadAuthority(p.path("ca.crt"), p.path("ca.key"))
	p.check(err)
	p.check(a.Client(p.path("bob.crt"), p.path("bob.key"), "bob", access.Agent, time.Now(), time.Hour))
	if _, _, err := p.handshake(p.server(true), p.client("bob")); err != nil {
		t.Error(err)
	}
	if _, err := ReadAuthority(p.path("alice.crt"), p.path("alice.key")); err == nil {
		t.Error("a client's certificate is an authority")
	}
	for _, name := range []string{"ca.key", "server.key", "alice.key"} {
		if info, err := os.Stat(p.path(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
}

// FuzzIdentity checks that the identity of any certificate has a valid name and an existing role.
func FuzzIdentity(f *testing.F) {
	p := newPKI(f)
	der, err := os.ReadFile(p.path("alice.crt"))
	p.check(err)
	block, _ := pem.Decode(der)
	f.Add(block.Bytes, "alice", "tilth:client")
	f.Add([]byte{0x30, 0x82}, "a\x00b", "tilth:")
	f.Add([]byte{}, strings.Repeat("x", 129), "tilth:agent")
	now := time.Now()
	check := func(t *testing.T, cert *x509.Certificate) {
		id, is, err := Identity(cert, now)
		if !is {
			return
		}
		if _, unknown := access.ParseRole(string(id.Role)); err != nil || unknown != nil || access.CheckName(id.Name) != nil {
			t.Errorf("%v stands for %v, %v", cert.Subject, id, err)
		}
		told := 0
		for _, o := range cert.Subject.Organization {
			if strings.HasPrefix(o, rolePrefix) {
				told++
			}
		}
		if told != 1 || id.Name != cert.Subject.CommonName || now.After(cert.NotAfter) {
			t.Errorf("%v until %v stands for %v", cert.Subject, cert.NotAfter, id)
		}
	}
	f.Fuzz(func(t *testing.T, der []byte, name, organizations string) {
		if cert, err := x509.ParseCertificate(der); err == nil {
			check(t, cert)
		}
		subject := pkix.Name{CommonName: name, Organization: strings.Split(organizations, ",")}
		check(t, &x509.Certificate{Subject: subject, SerialNumber: big.NewInt(1), NotAfter: now.Add(time.Hour)})
	})
}
