package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/access/certs"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// closedFarm is a farm with TLS and authentication. Its tuner has a token from the environment, its builder a
// certificate, and its runner a token from its configuration file.
type closedFarm struct{ *farmUnderTest }

func startClosedFarm(ctx context.Context, t *testing.T) *closedFarm {
	dir, err := os.MkdirTemp("", "farm")
	if err != nil {
		t.Fatal(err)
	}
	f := &closedFarm{&farmUnderTest{t: t, dir: dir, tracker: "unix:" + filepath.Join(dir, "sock"), running: map[string]*exec.Cmd{}}}
	f.tilth(ctx, "tracker", "certs", "--dir", f.path("certs"), "--host", "tracker.test", "--client", "shelf=agent").mustRun()
	for name, role := range map[string]string{"alice": "client", "bob": "client", "root": "admin", "board": "agent"} {
		f.tilth(ctx, "tracker", "token", "create", name, "--role", role, "--tokens", f.path("tokens.json"), "-o", f.path(name+".token")).mustRun()
	}
	options, err := certs.Proof{TLS: certs.ClientConfig{CA: f.path("certs/ca.crt")}, TokenFile: f.path("root.token")}.
		DialOptions(f.tracker, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if f.client, err = client.Dial(f.tracker, slog.New(slog.DiscardHandler), options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	f.write("tracker.yaml", "listen: "+f.tracker, "http: \"\"", "data: "+f.path("data"), "tls-cert: "+f.path("certs/tracker.crt"),
		"tls-key: "+f.path("certs/tracker.key"), "tls-client-ca: "+f.path("certs/ca.crt"), "tokens: "+f.path("tokens.json"))
	f.write("runner.yaml", "tracker: "+f.tracker, "tls-ca: "+f.path("certs/ca.crt"), "token-file: "+f.path("board.token"),
		"cache: "+f.path("cache"), "threads: [1]")
	f.service("tracker", nil, "--config", f.path("tracker.yaml"))
	f.service("runner", nil, "--config", f.path("runner.yaml"))
	f.service("tuner", []string{"TILTH_TRACKER=" + f.tracker, "TILTH_TOKEN_FILE=" + f.path("board.token")}, "--cache", f.path("cache"))
	f.service("builder", []string{"TILTH_TRACKER=" + f.tracker}, "--cache", f.path("cache"),
		"--tls-cert", f.path("certs/shelf.crt"), "--tls-key", f.path("certs/shelf.key"))
	return f
}

func (f *closedFarm) path(name string) string { return filepath.Join(f.dir, name) }

func (f *closedFarm) write(name string, lines ...string) {
	if err := os.WriteFile(f.path(name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *closedFarm) service(name string, variables []string, args ...string) {
	log, err := os.Create(f.path(name + ".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command("tilth", append([]string{name}, args...)...)
	c.Env = append(append(f.env(), "TILTH_TLS_CA="+f.path("certs/ca.crt")), variables...)
	if name == "tracker" || name == "runner" {
		c.Env = f.env()
	}
	c.Stderr = log
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.running[name] = c
}

// as runs the program with the token of a user in the environment.
func (f *closedFarm) as(ctx context.Context, name string, args ...string) *process {
	p := f.tilth(ctx, append(args, "--tracker", f.tracker)...)
	p.cmd.Env = append(p.cmd.Env, "TILTH_TLS_CA="+f.path("certs/ca.crt"))
	if name != "" {
		p.cmd.Env = append(p.cmd.Env, "TILTH_TOKEN_FILE="+f.path(name+".token"))
	}
	return p
}

// mustFail waits for a failure with a message.
func (p *process) mustFail(want string) {
	p.t.Helper()
	p.start()
	if err := p.cmd.Wait(); err == nil || !strings.Contains(p.stderr.String(), want) {
		p.t.Errorf("tilth %s: %v, %q; want %q", strings.Join(p.cmd.Args[1:], " "), err, p.stderr.String(), want)
	}
}

func TestClosedFarmAuthenticatesCallers(t *testing.T) {
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startClosedFarm(ctx, t)
	model := f.path("mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.awaitAgents(ctx)
	f.as(ctx, "alice", "tune", model, "--threads", "1", "--tasks", "0", "--trials", "4", "--quiet").mustRun()

	list := f.as(ctx, "bob", "jobs", "list", "--json")
	list.mustRun()
	var jobs []jobRow
	if err := json.Unmarshal(list.stdout.Bytes(), &jobs); err != nil || len(jobs) != 1 {
		t.Fatalf("%v: %s", err, list.stdout.String())
	}
	if j := jobs[0]; j.Owner != "alice" || j.State != "done" || j.Trials != 4 {
		t.Errorf("the job is %v", j)
	}
	f.as(ctx, "bob", "jobs", "cancel", jobs[0].Job).mustFail(
		"tilth: cancel job " + jobs[0].Job + ": job " + jobs[0].Job + " belongs to \"alice\", and you are bob: ask the owner or an admin\n")
	f.as(ctx, "", "jobs", "list").mustFail("tilth: list jobs: tracker " + f.tracker + ": not authenticated: this tracker wants a token or a client certificate: " +
		"name one with --token-file, or --tls-cert and --tls-key\n")
	f.as(ctx, "alice", "tuner", "--cache", f.path("other")).mustFail("alice has the role client, which may not call AgentService.Join: that is for agent")
	f.tilth(ctx, "jobs", "list", "--tracker", f.tracker).mustFail(
		"tilth: tracker " + f.tracker + " cannot be reached, it closed the connection: check that it is a running tracker and, if it uses TLS, name its authority with --tls-ca\n")
	f.tilth(ctx, "tracker", "certs", "--dir", f.path("other")).mustRun()
	f.tilth(ctx, "jobs", "list", "--tracker", f.tracker, "--tls-ca", f.path("other/ca.crt")).mustFail(
		"tilth: tracker " + f.tracker + " cannot be reached by TLS (failed to verify certificate: x509: certificate signed by unknown authority")

	f.tilth(ctx, "tracker", "token", "revoke", "--name", "bob", "--tokens", f.path("tokens.json")).mustRun()
	f.as(ctx, "bob", "jobs", "list").mustFail("not authenticated: the token is not known: it was revoked")

	agents, err := f.client.Agents(ctx, tilthv1.AgentKind_AGENT_KIND_UNSPECIFIED)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		want := "board"
		if a.GetSpec().GetKind() == tilthv1.AgentKind_AGENT_KIND_BUILDER {
			want = "shelf"
		}
		if a.GetIdentity() != want {
			t.Errorf("%s joined as %q, want %q", a.GetSpec().GetName(), a.GetIdentity(), want)
		}
	}
	audited, err := os.ReadFile(f.path("data/audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"verb":"JobService.SubmitJob","who":"alice"`, `"verb":"AgentService.Join","who":"shelf","role":"agent","proof":"certificate `,
		`"verb":"tokens.change"`, ` of bob, client"`} {
		if !strings.Contains(string(audited), want) {
			t.Errorf("the audit log lacks %s:\n%s", want, audited)
		}
	}
}
