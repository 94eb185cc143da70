package farm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/deploy/compose"
)

// composeRestarts renews the tracker's certificate as docs/operations.md says, which needs no restart, and then
// restarts the tracker, which forgets nothing.
func composeRestarts(ctx context.Context, t *testing.T, f *compose.Farm) {
	secrets := f.Machine.Path("tilth_client-secrets")
	before := certificate(ctx, t, f, secrets)
	c := newClient(t, f.Machine.Net, f.Of("builder")[0].Image, secrets)
	list := "jobs list" + onFarm("localhost:9190")
	jobs := c.tilth(ctx, list)
	setup := f.Of("setup")[0]
	if err := f.Restart(ctx, "setup"); err != nil {
		t.Fatal(err)
	}
	if err := setup.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, func() error {
		if now := certificate(ctx, t, f, secrets); now.Equal(before) {
			return fmt.Errorf("the tracker has the old certificate")
		}
		return nil
	})
	if err := f.Restart(ctx, "tracker"); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"tracker", "tuner", "builder", "runner"} {
		for _, r := range f.Of(service) {
			eventually(ctx, t, func() error { return r.Probe.Once(ctx) })
		}
	}
	eventually(ctx, t, func() error {
		said, err := c.try(ctx, "devices list"+onFarm("localhost:9190"))
		if err == nil && !strings.Contains(said, "runner") {
			err = fmt.Errorf("the runner is not back: %s", said)
		}
		return err
	})
	if now := c.tilth(ctx, list); now != jobs || !jobID.MatchString(jobs) {
		t.Errorf("the tracker's jobs were\n%s\nand are after its restart\n%s", jobs, now)
	}
}

// certificate is the tracker's, which the authority has signed.
func certificate(ctx context.Context, t *testing.T, f *compose.Farm, secrets string) *x509.Certificate {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(secrets, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	raw, err := f.Machine.Net.Dial(ctx, "tcp", "127.0.0.1:9191")
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, &tls.Config{RootCAs: pool, ServerName: "localhost"})
	defer conn.Close()
	if err := conn.HandshakeContext(ctx); err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0]
}
