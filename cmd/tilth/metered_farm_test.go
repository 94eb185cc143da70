package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
)

// meteredFarm is a farm whose processes serve metrics: the tracker with TLS and authentication, and the agents on the
// loopback. Agents have tokens of an issuer.
type meteredFarm struct {
	*farmUnderTest
	// pages holds the HTTP address of each service.
	pages map[string]string
	web   *http.Client
}

func startMeteredFarm(ctx context.Context, t *testing.T) *meteredFarm {
	dir, err := os.MkdirTemp("", "farm")
	if err != nil {
		t.Fatal(err)
	}
	f := &meteredFarm{
		farmUnderTest: &farmUnderTest{t: t, dir: dir, tracker: "unix:" + filepath.Join(dir, "sock"), running: map[string]*exec.Cmd{}},
		pages:         map[string]string{},
	}
	t.Cleanup(f.end)
	f.tilth(ctx, "tracker", "certs", "--dir", f.path("certs"), "--host", "127.0.0.1").mustRun()
	issuer, err := accesstest.NewIssuer(f.path("issuer.crt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	f.issue(issuer, "board", "boards")
	for name, role := range map[string]string{"alice": "client", "metrics": "read-only"} {
		f.tilth(ctx, "tracker", "token", "create", name, "--role", role, "--tokens", f.path("tokens.json"), "-o", f.path(name+".token")).mustRun()
	}
	f.web = f.browser()
	f.serve("tracker", "--listen", f.tracker, "--data", f.path("data"), "--tls-cert", f.path("certs/tracker.crt"),
		"--tls-key", f.path("certs/tracker.key"), "--tokens", f.path("tokens.json"),
		"--oidc", "issuer="+issuer.URL()+",audience="+accesstest.Audience+",ca="+f.path("issuer.crt"), "--oidc-role", "boards=agent")
	for _, kind := range []string{"tuner", "builder", "runner"} {
		args := append(f.as("board"), "--cache", f.path("cache"))
		if kind == "runner" {
			args = append(args, "--threads", "1")
		}
		f.serve(kind, args...)
	}
	return f
}

// issue writes a token of an issuer for a member of a group.
func (f *meteredFarm) issue(by *accesstest.Issuer, name, group string) {
	token, err := by.Sign(by.Claims(name, group), nil)
	if err == nil {
		err = os.WriteFile(f.path(name+".token"), []byte(token), 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *meteredFarm) path(name string) string { return filepath.Join(f.dir, name) }

// as returns the flags for calling the tracker.
func (f *meteredFarm) as(name string) []string {
	return []string{"--tracker", f.tracker, "--tls-ca", f.path("certs/ca.crt"), "--token-file", f.path(name + ".token")}
}

func (f *meteredFarm) browser() *http.Client {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(f.path("certs/ca.crt"))
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		f.t.Fatalf("no authority: %v", err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: time.Minute}
}

var servesHTTP = regexp.MustCompile(`\bhttp=(\S+:\d+)`)

// serve starts a service and waits until it prints its HTTP address.
func (f *meteredFarm) serve(name string, args ...string) {
	c := exec.Command("tilth", append([]string{name, "--http", "127.0.0.1:0"}, args...)...)
	c.Env = f.env()
	log, err := c.StderrPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.running[name] = c
	lines := bufio.NewScanner(log)
	var said []string
	for f.pages[name] == "" && lines.Scan() {
		said = append(said, lines.Text())
		if m := servesHTTP.FindStringSubmatch(lines.Text()); m != nil {
			f.pages[name] = m[1]
		}
	}
	if f.pages[name] == "" {
		f.t.Fatalf("the %s does not serve HTTP:\n%s", name, strings.Join(said, "\n"))
	}
	rest, err := os.Create(f.path(name + ".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	_, _ = fmt.Fprintln(rest, strings.Join(said, "\n"))
	go func() {
		defer rest.Close()
		for lines.Scan() {
			_, _ = fmt.Fprintln(rest, lines.Text())
		}
	}()
}

func (f *meteredFarm) end() {
	for service := range f.running {
		f.kill(service)
	}
	if f.t.Failed() {
		f.tellLogs()
	}
	if err := os.RemoveAll(f.dir); err != nil {
		f.t.Error(err)
	}
}

// scrape returns the metrics of a service.
func (f *meteredFarm) scrape(ctx context.Context, service string) string {
	f.t.Helper()
	scheme := "http"
	if service == "tracker" {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+f.pages[service]+"/metrics", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	token, err := os.ReadFile(f.path("metrics.token"))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := f.web.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		f.t.Fatalf("metrics of the %s: %s, %v: %s", service, response.Status, err, text)
	}
	return string(text)
}
