package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// startWithin starts a tracker whose limit on open files is a number.
func (f *farmUnderTest) startWithin(files int) (log func() string) {
	f.t.Helper()
	path := filepath.Join(f.dir, "tracker.log")
	to, err := os.Create(path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer to.Close()
	c := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec tilth "$@"`, files), "sh"}, f.args("tracker")...)...)
	c.Env, c.Stderr = f.env(), to
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.running["tracker"] = c
	return func() string {
		b, _ := os.ReadFile(path)
		return string(b)
	}
}

// TestTrackerWithoutDescriptors checks that a tracker with a low limit on open files keeps connections for its
// operators, and that a lack of descriptors reaches the log, the health and the caller.
func TestTrackerWithoutDescriptors(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := newFarmUnderTest(t)
	log := f.startWithin(160)
	f.awaitTracker(ctx)
	if said := log(); !strings.Contains(said, "fewer connections than --max-connections") || !strings.Contains(said, "open_files=160") {
		t.Errorf("at the start it logs\n%s", said)
	}
	// Agents take all connections that they can get.
	var conns []*grpc.ClientConn
	for {
		conn, err := grpc.NewClient(f.tracker, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		_, err = tilthv1.NewAgentServiceClient(conn).Heartbeat(ctx, &tilthv1.HeartbeatRequest{Session: "s"})
		if status.Code(err) != codes.NotFound {
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "--max-connections") {
				t.Errorf("connection %d: %v", len(conns), err)
			}
			break
		}
	}
	if n := len(conns); n < 60 || n > 80 {
		t.Errorf("the first refused connection is the %d.", n)
	}
	f.until(ctx, "the refused connection is not logged", func() bool { return strings.Contains(log(), "too many connections") })
	for range 3 {
		f.tilth(ctx, "devices", "list", "--tracker", f.tracker).mustRun()
	}

	file := filepath.Join(f.dir, "artifact")
	if err := os.WriteFile(file, []byte("artifact"), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, err := artifact.NewClient(conns[0], nil, slog.New(slog.DiscardHandler)).Upload(ctx, "package", file)
	if err != nil {
		t.Fatal(err)
	}

	// Then the process has no descriptor left.
	pid := f.running["tracker"].Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	limit := func(files int) {
		t.Helper()
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(files), Max: 160}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(len(open) / 2)
	health := healthv1.NewHealthClient(conns[0])
	await := func(want healthv1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		f.until(ctx, "the health is not "+want.String(), func() bool {
			got, err := health.Check(ctx, &healthv1.HealthCheckRequest{})
			return err == nil && got.GetStatus() == want
		})
	}
	await(healthv1.HealthCheckResponse_NOT_SERVING)
	download, err := tilthv1.NewArtifactServiceClient(conns[0]).DownloadArtifact(ctx, &tilthv1.DownloadArtifactRequest{Digest: ref.GetDigest()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = download.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "file descriptor") {
		t.Errorf("a download: %v", err)
	}
	fresh := f.tilth(ctx, "devices", "list", "--tracker", f.tracker)
	fresh.start()
	f.until(ctx, "the connection that was not accepted is not logged", func() bool { return strings.Contains(log(), "too many open files") })
	limit(160)
	fresh.mustEnd()
	await(healthv1.HealthCheckResponse_SERVING)
	if said := log(); !strings.Contains(said, "the tracker is not ready") {
		t.Errorf("it logs\n%s", said)
	}
}

// TestTrackerRefusesAHopelessLimit checks the error of a tracker that could not even open its files.
func TestTrackerRefusesAHopelessLimit(t *testing.T) {
	f := newFarmUnderTest(t)
	log := f.startWithin(64)
	if err := f.running["tracker"].Wait(); err == nil || !strings.Contains(log(), "a tracker needs at least 128") || !strings.Contains(log(), "LimitNOFILE") {
		t.Errorf("%v: %s", err, log())
	}
	delete(f.running, "tracker")
}
