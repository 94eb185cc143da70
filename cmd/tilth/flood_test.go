package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/lab/testkit/accesstest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// besieged is a tracker with tokens in a separate process.
type besieged struct {
	*farmUnderTest
	tracker *exec.Cmd
}

func besiege(ctx context.Context, t *testing.T) *besieged {
	dir, err := os.MkdirTemp("", "farm")
	if err != nil {
		t.Fatal(err)
	}
	f := &closedFarm{&farmUnderTest{t: t, dir: dir, tracker: "unix:" + filepath.Join(dir, "sock"), running: map[string]*exec.Cmd{}}}
	if f.client, err = client.Dial(f.tracker, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	for name, role := range map[string]string{"alice": "client", "root": "admin"} {
		f.tilth(ctx, "tracker", "token", "create", name, "--role", role, "--tokens", f.path("tokens.json"), "-o", f.path(name+".token")).mustRun()
	}
	f.write("tracker.yaml", "listen: "+f.tracker, "http: \"\"", "data: "+f.path("data"), "tokens: "+f.path("tokens.json"))
	f.service("tracker", nil, "--config", f.path("tracker.yaml"))
	return &besieged{f.farmUnderTest, f.running["tracker"]}
}

// dial connects once the tracker listens.
func (b *besieged) dial(ctx context.Context) net.Conn {
	b.t.Helper()
	for {
		c, err := net.Dial("unix", strings.TrimPrefix(b.farmUnderTest.tracker, "unix:"))
		if err == nil {
			b.t.Cleanup(func() { c.Close() })
			return c
		}
		if ctx.Err() != nil {
			b.t.Fatal(err)
		}
	}
}

// token returns the token of an identity.
func (b *besieged) token(of string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, of+".token"))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

var peakOf = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak returns the tracker's peak memory in MiB.
func (b *besieged) peak() int {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.tracker.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	kib, err := strconv.Atoi(peakOf.FindStringSubmatch(string(text))[1])
	if err != nil {
		b.t.Fatal(err)
	}
	return kib >> 10
}

// attack sends unfinished messages on a number of concurrent connections until the tracker accepts no more.
func (b *besieged) attack(ctx context.Context, connections, calls int, method, token string, length int) {
	b.t.Helper()
	done := make(chan struct{}, connections)
	for range connections {
		f, err := accesstest.NewFlood(b.dial(ctx))
		if err != nil {
			b.t.Fatal(err)
		}
		go func() {
			for range calls {
				if f.Begin(method, token, length) != nil {
					break
				}
			}
			_ = f.Send() // refused or dropped
			done <- struct{}{}
		}()
	}
	for range connections {
		<-done
	}
}

// unreadCalls makes a number of calls on one connection without reading the answers.
func (b *besieged) unreadCalls(ctx context.Context, calls int, method, token string, request proto.Message) {
	b.t.Helper()
	encoded, err := proto.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	f, err := accesstest.NewFlood(b.dial(ctx), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	if err != nil {
		b.t.Fatal(err)
	}
	for range calls {
		if err := f.Ask(method, token, encoded); err != nil {
			b.t.Fatal(err)
		}
	}
	go func() { _ = f.ReadAll() }()
}

// TestUnreadAnswersDoNotFillATrackersMemory is a regression test: a client that repeatedly downloaded an artifact
// without reading grew a tracker from 31 MiB to 14 GiB, and used up its file descriptors.
func TestUnreadAnswersDoNotFillATrackersMemory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	b := besiege(ctx, t)
	b.dial(ctx)
	options, err := certs.Proof{TokenFile: filepath.Join(b.dir, "alice.token")}.DialOptions(b.farmUnderTest.tracker, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(b.farmUnderTest.tracker, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	file := filepath.Join(b.dir, "artifact")
	if err := os.WriteFile(file, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	artifact, err := artifact.NewClient(conn, nil, slog.New(slog.DiscardHandler)).Upload(ctx, "model", file)
	if err != nil {
		t.Fatal(err)
	}
	before := b.peak()
	for range 20 {
		b.unreadCalls(ctx, 200, tilthv1.ArtifactService_DownloadArtifact_FullMethodName, b.token("alice"), &tilthv1.DownloadArtifactRequest{Digest: artifact.GetDigest()})
	}
	b.farmUnderTest.tilth(ctx, "jobs", "list", "--tracker", b.farmUnderTest.tracker, "--token-file", filepath.Join(b.dir, "root.token")).mustRun()
	after := b.peak()
	t.Logf("from %d to %d MiB", before, after)
	if limit := 512 * memoryFactor; after-before > limit {
		t.Errorf("takes %d MiB, want at most %d", after-before, limit)
	}
}

// TestUnfinishedMessagesDoNotFillATrackersMemory is a regression test: forty unfinished messages of 63 MiB on one
// unauthenticated connection grew a tracker from 21 to 2,597 MiB.
func TestUnfinishedMessagesDoNotFillATrackersMemory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	b := besiege(ctx, t)
	alice := b.token("alice")
	b.dial(ctx)
	for _, c := range []struct {
		name               string
		connections, calls int
		method, token      string
		length             int
		max                int // growth in MiB
	}{
		{"a stranger, one connection", 1, 40, healthv1.Health_Check_FullMethodName, "", 63 << 20, 32},
		{"a stranger, 200 connections", 200, 40, healthv1.Health_Check_FullMethodName, "", 63 << 20, 64},
		{"a client, beyond the method's bound", 1, 40, tilthv1.JobService_SubmitJob_FullMethodName, alice, 63 << 20, 64},
		{"a client, one connection", 1, 40, tilthv1.JobService_SubmitJob_FullMethodName, alice, 16 << 20, 256},
		{"a client, 20 connections", 20, 40, tilthv1.JobService_SubmitJob_FullMethodName, alice, 16 << 20, 512},
	} {
		before := b.peak()
		b.attack(ctx, c.connections, c.calls, c.method, c.token, c.length)
		after := b.peak()
		t.Logf("%s: from %d to %d MiB", c.name, before, after)
		if limit := c.max * memoryFactor; after-before > limit {
			t.Errorf("%s: takes %d MiB, want at most %d", c.name, after-before, limit)
		}
	}
	list := b.farmUnderTest.tilth(ctx, "jobs", "list", "--tracker", b.farmUnderTest.tracker, "--token-file", filepath.Join(b.dir, "alice.token"))
	list.mustRun()
}
