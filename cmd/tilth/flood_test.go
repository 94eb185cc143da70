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

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tilth-dev/tilth/access/guard/flood"
	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// besieged is a tracker that takes tokens, in a process of its own.
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
	f.tilth(ctx, "tracker", "token", "create", "alice", "--role", "client", "--tokens", f.path("tokens.json"), "-o", f.path("alice.token")).mustRun()
	f.write("tracker.yaml", "listen: "+f.tracker, "http: \"\"", "data: "+f.path("data"), "tokens: "+f.path("tokens.json"))
	f.service("tracker", nil, "--config", f.path("tracker.yaml"))
	return &besieged{f.farmUnderTest, f.running["tracker"]}
}

// dial waits for the tracker to listen.
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

var peakOf = regexp.MustCompile(`VmHWM:\s*(\d+) kB`)

// peak is the most memory that the tracker has had, in MiB.
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

// attack sends unfinished messages on so many connections at once until the tracker takes no more of them.
func (b *besieged) attack(ctx context.Context, connections, calls int, method, token string, length int) {
	b.t.Helper()
	done := make(chan struct{}, connections)
	for range connections {
		f, err := flood.New(b.dial(ctx))
		if err != nil {
			b.t.Fatal(err)
		}
		go func() {
			for range calls {
				if f.Begin(method, token, length) != nil {
					break
				}
			}
			_ = f.Send() // refused, or dropped
			done <- struct{}{}
		}()
	}
	for range connections {
		<-done
	}
}

// Forty unfinished messages of 63 MiB on one connection, of a caller who proved nothing, took a tracker from 21 to
// 2,597 MiB.
func TestUnfinishedMessagesDoNotFillATrackersMemory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := besiege(ctx, t)
	token, err := os.ReadFile(filepath.Join(b.dir, "alice.token"))
	if err != nil {
		t.Fatal(err)
	}
	alice := strings.TrimSpace(string(token))
	b.dial(ctx)
	for _, c := range []struct {
		name               string
		connections, calls int
		method, token      string
		length             int
		most               int // MiB more than before
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
		if most := c.most * memoryFactor; after-before > most {
			t.Errorf("%s: takes %d MiB, want at most %d", c.name, after-before, most)
		}
	}
	list := b.farmUnderTest.tilth(ctx, "jobs", "list", "--tracker", b.farmUnderTest.tracker, "--token-file", filepath.Join(b.dir, "alice.token"))
	list.mustRun()
}
