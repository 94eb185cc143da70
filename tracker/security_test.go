package tracker_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// closed is a tracker with authentication on real listeners.
type closed struct {
	testing.TB
	dir      string
	cfg      tracker.Config
	rpc, web string
	tokens   map[string]string // by name
	stop     func()
}

// auditLines is large enough that the audit log never rotates in these tests.
const auditLines = 1 << 30

// newClosed starts a tracker with tokens named after each role, of the clients alice and bob, and of the agents anna
// and ben. With TLS it also has a certificate and accepts client certificates.
func newClosed(t testing.TB, withTLS bool) *closed {
	t.Helper()
	c := &closed{TB: t, dir: t.TempDir(), tokens: map[string]string{}}
	for name, role := range map[string]access.Role{
		"read-only": access.ReadOnly, "client": access.Client, "agent": access.Agent, "admin": access.Admin,
		"alice": access.Client, "bob": access.Client, "anna": access.Agent, "ben": access.Agent,
	} {
		text, _, err := access.CreateToken(c.path("tokens.json"), access.TokenRequest{Name: name, Role: role}, time.Now())
		c.check(err)
		c.tokens[name] = text
	}
	if withTLS {
		order := certs.Order{Hosts: []string{"localhost"}, Clients: map[string]access.Role{"carl": access.Client}, Lifetime: time.Hour}
		_, err := order.Make(c.dir, time.Now())
		c.check(err)
		c.cfg.Security.TLS, err = certs.NewServer(certs.ServerConfig{
			Cert: c.path("tracker.crt"), Key: c.path("tracker.key"), ClientCA: c.path("ca.crt"),
		}, slog.New(slog.DiscardHandler))
		c.check(err)
		c.cfg.Security.Certificates = true
	}
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *closed) path(name string) string { return filepath.Join(c.dir, name) }

func (c *closed) check(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *closed) start() {
	c.Helper()
	var err error
	discard := slog.New(slog.DiscardHandler)
	c.cfg.Security.Tokens, err = access.OpenTokens(c.path("tokens.json"), discard, nil)
	c.check(err)
	file, err := access.OpenAuditFile(c.path("audit.jsonl"), auditLines, 1)
	c.check(err)
	c.cfg.Security.Audit = access.NewAuditLog(file, discard)
	c.cfg.Store, err = bolt.Open(c.path("records.db"), bolt.Options{})
	c.check(err)
	c.cfg.ArtifactsDir = c.path("artifacts")
	tr, err := tracker.New(c.cfg)
	c.check(err)
	rpc, err := tracker.Listen("127.0.0.1:0")
	c.check(err)
	web, err := tracker.Listen("127.0.0.1:0")
	c.check(err)
	c.rpc, c.web = rpc.Addr().String(), web.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, rpc, web) }()
	c.stop = func() {
		cancel()
		if err := errors.Join(<-served, c.cfg.Store.Close(), c.cfg.Security.Audit.Close()); err != nil {
			c.Error(err)
		}
	}
}

// as returns a connection with the named token. The empty name means no token.
func (c *closed) as(name string) *grpc.ClientConn {
	c.Helper()
	p := certs.Proof{}
	if c.cfg.Security.TLS != nil {
		p.TLS.CA = c.path("ca.crt")
	}
	if name != "" {
		p.TokenFile = c.path(name + ".token")
		c.check(os.WriteFile(p.TokenFile, []byte(c.tokens[name]+"\n"), 0o600))
	}
	return c.by(p)
}

func (c *closed) by(p certs.Proof) *grpc.ClientConn {
	c.Helper()
	options, err := p.DialOptions(c.rpc, slog.New(slog.DiscardHandler))
	c.check(err)
	conn, err := agent.Dial(c.rpc, options...)
	c.check(err)
	c.Cleanup(func() { conn.Close() })
	return conn
}

func (c *closed) submit(name, request string) (*tilthv1.Job, error) {
	s := spec("conv")
	s.Owner = "somebody"
	response, err := tilthv1.NewJobServiceClient(c.as(name)).SubmitJob(c.Context(), &tilthv1.SubmitJobRequest{RequestId: request, Spec: s})
	return response.GetJob(), err
}

func (c *closed) cancel(name, job string) error {
	_, err := tilthv1.NewJobServiceClient(c.as(name)).CancelJob(c.Context(), &tilthv1.CancelJobRequest{JobId: job, Reason: "why not"})
	return err
}

func (c *closed) join(name, agentName string) (string, error) {
	response, err := tilthv1.NewAgentServiceClient(c.as(name)).Join(c.Context(), &tilthv1.JoinRequest{Spec: agentSpec(agentName, tilthv1.AgentKind_AGENT_KIND_TUNER)})
	return response.GetSession(), err
}

func wantCode(t testing.TB, what string, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v; want %v, %q", what, err, code, text)
	}
}

// services returns the methods that a tracker serves.
func services(t *testing.T) []string {
	t.Helper()
	f := newFarm(t, tracker.Config{})
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(f.TempDir(), "r.db"), bolt.Options{}))
	t.Cleanup(func() { db.Close() })
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: t.TempDir()}))
	server := tr.NewServer()
	defer server.Stop()
	var methods []string
	for service, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			methods = append(methods, "/"+service+"/"+m.Name)
		}
	}
	slices.Sort(methods)
	return methods
}

func TestEveryMethodHasARule(t *testing.T) {
	served := services(t)
	for _, m := range served {
		if !slices.Contains(wire.Methods(), m) {
			t.Errorf("%s is served, but it lacks the option call: nobody can call it on a closed tracker", m)
		}
	}
	for _, m := range wire.Methods() {
		if !slices.Contains(served, m) {
			t.Errorf("%s has the option call, but is not served", m)
		}
	}
}

// allowed reports whether a call reaches its method's handler.
func (c *closed) allowed(ctx context.Context, conn *grpc.ClientConn, method string) bool {
	c.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	c.check(err)
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil && !errors.Is(err, io.EOF) {
		c.Fatal(err)
	}
	c.check(stream.CloseSend())
	switch err := stream.RecvMsg(&emptypb.Empty{}); status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return false
	case codes.DeadlineExceeded, codes.Unavailable, codes.Unimplemented:
		c.Errorf("%s: %v", method, err)
	}
	return true
}

// TestEveryRoleMayCallWhatTheOptionsSay calls every method in every role and without credentials, and compares the
// results with the options of the methods.
func TestEveryRoleMayCallWhatTheOptionsSay(t *testing.T) {
	c := newClosed(t, false)
	conns := map[tilthv1.Role]*grpc.ClientConn{
		tilthv1.Role_ROLE_UNSPECIFIED: c.as(""), tilthv1.Role_ROLE_READ_ONLY: c.as("read-only"), tilthv1.Role_ROLE_CLIENT: c.as("client"),
		tilthv1.Role_ROLE_AGENT: c.as("agent"), tilthv1.Role_ROLE_ADMIN: c.as("admin"),
	}
	for _, method := range wire.Methods() {
		if method == healthv1.Health_Watch_FullMethodName { // it never ends
			continue
		}
		for role, conn := range conns {
			want := wire.Call(method).GetPublic() || slices.Contains(wire.Call(method).GetRoles(), role)
			if got := c.allowed(t.Context(), conn, method); got != want {
				t.Errorf("that %v may call %s is %v, want %v", role, method, got, want)
			}
		}
	}
}

func TestUnauthenticatedCallersAreRefused(t *testing.T) {
	c := newClosed(t, false)
	plain := c.as("")
	list := func(ctx context.Context) error {
		_, err := tilthv1.NewJobServiceClient(plain).ListJobs(ctx, &tilthv1.ListJobsRequest{})
		return err
	}
	wantCode(t, "nothing", list(t.Context()), codes.Unauthenticated, "this tracker wants a token: name its file with --token-file")
	for what, header := range map[string]string{
		"another scheme": "Basic " + c.tokens["admin"], "a wrong token": "Bearer " + c.tokens["admin"] + "x", "no scheme": c.tokens["admin"], "blanks": " ",
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
		wantCode(t, what, list(ctx), codes.Unauthenticated, "")
	}
	twice := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+c.tokens["admin"], "authorization", "Bearer "+c.tokens["admin"])
	wantCode(t, "two tokens", list(twice), codes.Unauthenticated, "not one bearer token")
	once := metadata.AppendToOutgoingContext(t.Context(), "authorization", "bearer "+c.tokens["admin"])
	wantCode(t, "a good token", list(once), codes.OK, "")
}

func TestJobBelongsToWhoSubmittedIt(t *testing.T) {
	c := newClosed(t, false)
	job, err := c.submit("alice", "one")
	c.check(err)
	if owner := job.GetSpec().GetOwner(); owner != "alice" {
		t.Errorf("the job belongs to %q, who is what alice said", owner)
	}
	wantCode(t, "another client", c.cancel("bob", job.GetId()), codes.PermissionDenied, `belongs to "alice", and you are bob: ask the owner or an admin`)
	wantCode(t, "a reader", c.cancel("read-only", job.GetId()), codes.PermissionDenied, "read-only, which may not call JobService.CancelJob: that is for client, admin")
	wantCode(t, "a job that is not there", c.cancel("bob", "job-00000077"), codes.NotFound, "does not exist")
	wantCode(t, "its owner", c.cancel("alice", job.GetId()), codes.OK, "")
	wantCode(t, "another client, when it has ended", c.cancel("bob", job.GetId()), codes.PermissionDenied, "belongs to")
	job, err = c.submit("bob", "two")
	c.check(err)
	wantCode(t, "an admin", c.cancel("admin", job.GetId()), codes.OK, "")
	remove := func(who string) error {
		_, err := tilthv1.NewJobServiceClient(c.as(who)).DeleteJob(t.Context(), &tilthv1.DeleteJobRequest{JobId: job.GetId()})
		return err
	}
	wantCode(t, "another client that deletes it", remove("alice"), codes.PermissionDenied, `belongs to "bob"`)
	wantCode(t, "a reader that deletes it", remove("read-only"), codes.PermissionDenied, "may not call JobService.DeleteJob")
	wantCode(t, "its owner who deletes it", remove("bob"), codes.OK, "")
	wantCode(t, "its owner who does so again", remove("bob"), codes.OK, "")
}

func TestSessionBelongsToWhoJoined(t *testing.T) {
	c := newClosed(t, false)
	session, err := c.join("anna", "board")
	c.check(err)
	steal := func(when string) {
		t.Helper()
		conn := c.as("ben")
		agents := tilthv1.NewAgentServiceClient(conn)
		token := &tilthv1.LeaseToken{Session: session, Subject: "job-00000001", Attempt: 1}
		for what, call := range map[string]func() error{
			"Heartbeat": func() error {
				_, err := agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session})
				return err
			},
			"LeaseWork": func() error {
				_, err := agents.LeaseWork(t.Context(), &tilthv1.LeaseWorkRequest{Session: session})
				return err
			},
			"EndWait": func() error {
				_, err := agents.EndWait(t.Context(), &tilthv1.EndWaitRequest{Session: session})
				return err
			},
			"Leave": func() error {
				_, err := agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: session})
				return err
			},
			"ReturnLease": func() error {
				_, err := agents.ReturnLease(t.Context(), &tilthv1.ReturnLeaseRequest{Lease: token})
				return err
			},
			"ProposeBatch": func() error {
				_, err := tilthv1.NewSearchServiceClient(conn).ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: token})
				return err
			},
			"ReportMeasurements": func() error {
				_, err := tilthv1.NewMeasureServiceClient(conn).ReportMeasurements(t.Context(), &tilthv1.ReportMeasurementsRequest{Lease: token})
				return err
			},
		} {
			wantCode(t, when+what, call(), codes.PermissionDenied, "the session belongs to another identity than ben")
		}
		_, err := c.join("ben", "board")
		wantCode(t, when+"Join", err, codes.PermissionDenied, `agent "board" is joined by another identity`)
		_, err = tilthv1.NewAgentServiceClient(c.as("anna")).Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session})
		wantCode(t, when+"its own heartbeat", err, codes.OK, "")
	}
	steal("")
	c.stop()
	c.start()
	steal("after a restart: ")
	_, err = tilthv1.NewAgentServiceClient(c.as("anna")).Leave(t.Context(), &tilthv1.LeaveRequest{Session: session})
	c.check(err)
	_, err = c.join("ben", "board")
	wantCode(t, "the name of an agent that left", err, codes.OK, "")
}

func TestRevokedTokenEndsItsStreams(t *testing.T) {
	c := newClosed(t, false)
	job, err := c.submit("alice", "one")
	c.check(err)
	stream, err := tilthv1.NewJobServiceClient(c.as("bob")).WatchJob(t.Context(), &tilthv1.WatchJobRequest{JobId: job.GetId()})
	c.check(err)
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	_, err = access.RevokeTokens(c.path("tokens.json"), func(k access.Token) bool { return k.Name == "bob" })
	c.check(err)
	c.check(c.cancel("alice", job.GetId()))
	_, err = stream.Recv()
	wantCode(t, "the next event", err, codes.Unauthenticated, "the token is not known: it was revoked")
	wantCode(t, "the next call", c.cancel("bob", job.GetId()), codes.Unauthenticated, "")
}

func TestRevokedTokenGetsNoWorkItWaitedFor(t *testing.T) {
	c := newClosed(t, false)
	session, err := c.join("anna", "tuner")
	c.check(err)
	agents := tilthv1.NewAgentServiceClient(c.as("anna"))
	work := make(chan error, 1)
	go func() {
		_, err := agents.LeaseWork(t.Context(), &tilthv1.LeaseWorkRequest{Session: session, Wait: seconds(60)})
		work <- err
	}()
	_, err = access.RevokeTokens(c.path("tokens.json"), func(k access.Token) bool { return k.Name == "anna" })
	c.check(err)
	_, err = c.submit("alice", "one")
	c.check(err)
	wantCode(t, "LeaseWork", <-work, codes.Unauthenticated, "the token is not known")
}

func TestTokenIsReplacedWithoutAPause(t *testing.T) {
	c := newClosed(t, false)
	conn := c.as("alice")
	list := func() error {
		_, err := tilthv1.NewJobServiceClient(conn).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
		return err
	}
	wantCode(t, "the first token", list(), codes.OK, "")
	next, made, err := access.CreateToken(c.path("tokens.json"), access.TokenRequest{Name: "alice", Role: access.Client}, time.Now())
	c.check(err)
	wantCode(t, "while there are two", list(), codes.OK, "")
	c.check(os.WriteFile(c.path("next"), []byte(next), 0o600))
	c.check(os.Rename(c.path("next"), c.path("alice.token")))
	_, err = access.RevokeTokens(c.path("tokens.json"), func(k access.Token) bool { return k.Name == "alice" && k.ID != made.ID })
	c.check(err)
	wantCode(t, "on the same connection, the second token", list(), codes.OK, "")
}

func TestCertificateStandsInForAToken(t *testing.T) {
	c := newClosed(t, true)
	carl := certs.Proof{TLS: certs.ClientConfig{CA: c.path("ca.crt"), Cert: c.path("carl.crt"), Key: c.path("carl.key")}}
	conn := c.by(carl)
	response, err := tilthv1.NewJobServiceClient(conn).SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")})
	c.check(err)
	if owner := response.GetJob().GetSpec().GetOwner(); owner != "carl" {
		t.Errorf("the job belongs to %q", owner)
	}
	_, err = tilthv1.NewAgentServiceClient(conn).Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec("a", tilthv1.AgentKind_AGENT_KIND_TUNER)})
	wantCode(t, "a client joins", err, codes.PermissionDenied, "carl has the role client")
	_, err = tilthv1.NewJobServiceClient(c.as("")).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
	wantCode(t, "neither", err, codes.Unauthenticated, "this tracker wants a token or a client certificate")
	carl.TokenFile = c.path("wrong.token")
	c.check(os.WriteFile(carl.TokenFile, []byte("tilth_wrong"), 0o600))
	_, err = tilthv1.NewJobServiceClient(c.by(carl)).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
	wantCode(t, "a wrong token beside it", err, codes.Unauthenticated, "the token is not known")
	clear, err := grpc.NewClient(c.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	c.check(err)
	defer clear.Close()
	_, err = tilthv1.NewJobServiceClient(clear).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
	wantCode(t, "in the clear", err, codes.Unavailable, "")
}

// entries reads the audit log.
func (c *closed) entries() (out []access.AuditEntry) {
	c.Helper()
	f, err := os.Open(c.path("audit.jsonl"))
	c.check(err)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var e access.AuditEntry
		c.check(json.Unmarshal(s.Bytes(), &e))
		out = append(out, e)
	}
	return out
}

func TestAuditLogTellsWhoDidWhat(t *testing.T) {
	c := newClosed(t, false)
	job, err := c.submit("alice", "one")
	c.check(err)
	_ = c.cancel("bob", job.GetId())
	c.check(c.cancel("alice", job.GetId()))
	_ = c.cancel("", job.GetId())
	session, err := c.join("anna", "board")
	c.check(err)
	_, err = tilthv1.NewAgentServiceClient(c.as("anna")).Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session})
	c.check(err)
	_, err = tilthv1.NewAgentServiceClient(c.as("anna")).Leave(t.Context(), &tilthv1.LeaveRequest{Session: session})
	c.check(err)
	_, err = tilthv1.NewJobServiceClient(c.as("read-only")).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
	c.check(err)
	imports, err := tilthv1.NewRecordServiceClient(c.as("admin")).ImportRecords(t.Context())
	c.check(err)
	_, err = imports.CloseAndRecv()
	c.check(err)
	type line struct {
		verb, who, role, result string
		what                    map[string]string
	}
	want := []line{
		{"JobService.SubmitJob", "alice", "client", "OK", map[string]string{"request_id": "one", "job_id": job.GetId()}},
		{"JobService.CancelJob", "bob", "client", "PermissionDenied", map[string]string{"job_id": job.GetId(), "reason": "why not"}},
		{"JobService.CancelJob", "alice", "client", "OK", map[string]string{"job_id": job.GetId(), "reason": "why not"}},
		{"JobService.CancelJob", "", "", "Unauthenticated", map[string]string{}},
		{"AgentService.Join", "anna", "agent", "OK", map[string]string{"agent": "board"}},
		{"AgentService.Leave", "anna", "agent", "OK", map[string]string{"agent": "board"}},
		{"RecordService.ImportRecords", "admin", "admin", "OK", map[string]string{}},
	}
	got := c.entries()
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d: %v", len(got), len(want), got)
	}
	for i, w := range want {
		e := got[i]
		if e.Verb != w.verb || e.Who != w.who || e.Role != w.role || e.Result != w.result {
			t.Errorf("line %d is %v, want %v", i, e, w)
		}
		for k, v := range w.what {
			if e.What[k] != v {
				t.Errorf("line %d has %s %q, want %q", i, k, e.What[k], v)
			}
		}
		if host, _, err := net.SplitHostPort(e.From); err != nil || host != "127.0.0.1" {
			t.Errorf("line %d is from %q", i, e.From)
		}
		if known := e.Who != ""; known != strings.HasPrefix(e.Proof, "token ") {
			t.Errorf("line %d has the proof %q", i, e.Proof)
		}
		for _, secret := range append([]string{session}, c.tokens[w.who]) {
			if secret != "" && strings.Contains(strings.Join(slices.Collect(values(e.What)), " "), secret) {
				t.Errorf("line %d tells a secret", i)
			}
		}
	}
}

// TestAuditLogTellsWhatBecameOfAPrivateJob is a regression test: the log reported that a user deleted another's
// private job, although the job was not deleted.
func TestAuditLogTellsWhatBecameOfAPrivateJob(t *testing.T) {
	c := newClosed(t, false)
	s := spec("conv")
	s.Private = true
	jobs := tilthv1.NewJobServiceClient(c.as("alice"))
	submitted, err := jobs.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "one", Spec: s})
	c.check(err)
	id := submitted.GetJob().GetId()
	_, err = tilthv1.NewJobServiceClient(c.as("bob")).DeleteJob(t.Context(), &tilthv1.DeleteJobRequest{JobId: id})
	c.check(err)
	c.check(c.cancel("alice", id))
	_, err = jobs.DeleteJob(t.Context(), &tilthv1.DeleteJobRequest{JobId: id})
	c.check(err)
	var got []string
	for _, e := range c.entries() {
		if e.Verb == "JobService.DeleteJob" {
			got = append(got, e.Who+" "+e.What["job_id"]+" "+e.Result+" "+e.Message)
		}
	}
	want := []string{
		"bob " + id + " PermissionDenied job " + id + ` is private and belongs to "alice": reported as not found to bob`,
		"alice " + id + " OK ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log says %q, want %q", got, want)
	}
}

func values(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func TestUnauditableChangesAreRefused(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Fatal(err)
	}
	c := newClosed(t, false)
	c.stop()
	c.check(os.Remove(c.path("audit.jsonl")))
	c.check(os.Symlink("/dev/full", c.path("audit.jsonl")))
	c.start()
	// The first audited call detects the full log.
	if _, err := c.submit("alice", "one"); err != nil {
		t.Fatal(err)
	}
	_, err := c.submit("alice", "two")
	wantStatus(t, err, codes.Unavailable, wire.ReasonUnwritten, "the audit log cannot be written")
	_, err = c.join("anna", "board")
	wantCode(t, "Join", err, codes.OK, "")
	jobs, err := tilthv1.NewJobServiceClient(c.as("alice")).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
	if err != nil || len(jobs.GetJobs()) != 1 {
		t.Errorf("there are %d jobs, %v; want 1", len(jobs.GetJobs()), err)
	}
}

// TestRefusalsOfOneHostAreNotAllWrittenDown because unauthenticated callers could otherwise displace the entries of
// others.
func TestRefusalsOfOneHostAreNotAllWrittenDown(t *testing.T) {
	c := newClosed(t, false)
	conn := c.as("")
	for range 100 {
		_, err := tilthv1.NewJobServiceClient(conn).ListJobs(t.Context(), &tilthv1.ListJobsRequest{})
		wantCode(t, "nobody", err, codes.Unauthenticated, "")
	}
	if n := len(c.entries()); n > 40 { // two windows at most
		t.Errorf("%d lines for 100 refusals", n)
	}
}

func TestStalledPageConnectionsAreClosed(t *testing.T) {
	dir := t.TempDir()
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(dir, "r.db"), bolt.Options{}))
	defer db.Close()
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{
		Store: db, ArtifactsDir: filepath.Join(dir, "a"),
		Security: tracker.Security{Limits: connlimit.Limits{Handshake: 200 * time.Millisecond, PerHost: 2}},
	}))
	rpc, web := must[net.Listener](t)(tracker.Listen("127.0.0.1:0")), must[net.Listener](t)(tracker.Listen("127.0.0.1:0"))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, rpc, web) }()
	for what, said := range map[string]string{"silent": "", "slow": "GET / HTTP/1.1\r\nHost: t\r\n", "endless": "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<16),
		"reading": "POST /api/v1/records:get HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"} {
		conn := must[net.Conn](t)(net.Dial("tcp", web.Addr().String()))
		if err := conn.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, said)
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a %s peer is kept", what)
		}
		conn.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// trust returns a TLS configuration that trusts the CA in a file.
func trust(t *testing.T, file string) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(must[[]byte](t)(os.ReadFile(file))) {
		t.Fatal("no certificate in ", file)
	}
	return &tls.Config{RootCAs: pool}
}

func TestPagesAskWhoCalls(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		c := newClosed(t, withTLS)
		transport := &http.Transport{DisableKeepAlives: true}
		scheme := "http://"
		if withTLS {
			scheme = "https://"
			transport.TLSClientConfig = trust(t, c.path("ca.crt"))
		}
		client := &http.Client{Transport: transport}
		for _, try := range []struct {
			path, bearer, password string
			want                   int
		}{
			{"/healthz", "", "", http.StatusOK},
			{"/readyz", "", "", http.StatusOK},
			{"/metrics", "", "", http.StatusUnauthorized},
			{"/", "", "", http.StatusUnauthorized},
			{"/metrics", "tilth_wrong", "", http.StatusUnauthorized},
			{"/metrics", c.tokens["read-only"], "", http.StatusOK},
			{"/", "", c.tokens["read-only"], http.StatusOK},
			{"/metrics", c.tokens["agent"], "", http.StatusForbidden},
		} {
			req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+c.web+try.path, nil))
			if try.bearer != "" {
				req.Header.Set("Authorization", "Bearer "+try.bearer)
			}
			if try.password != "" {
				req.SetBasicAuth("anybody", try.password)
			}
			page, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text := must[[]byte](t)(io.ReadAll(page.Body))
			page.Body.Close()
			if try.path == "/metrics" && page.StatusCode == http.StatusOK {
				if !bytes.Contains(text, []byte(`tilth_tracker_calls_refused_total{code="Unauthenticated"} 3`)) {
					t.Error("refused calls are not counted")
				}
				if bytes.Contains(text, []byte("tilth_tracker_certificate_expiry_timestamp_seconds 1.")) != withTLS {
					t.Errorf("TLS %v: the certificate's end is wrong", withTLS)
				}
			}
			if page.StatusCode != try.want {
				t.Errorf("TLS %v, %v: %s, want %d", withTLS, try, page.Status, try.want)
			}
		}
	}
}
