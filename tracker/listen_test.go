package tracker_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

func TestListenTakesOverOnlyADeadSocket(t *testing.T) {
	for _, addr := range []string{"unix:" + filepath.Join(t.TempDir(), "sock"), "127.0.0.1:0"} {
		lis, err := tracker.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(addr, ":0") {
			addr = lis.Addr().String()
		}
		if _, err := tracker.Listen(addr); err == nil || !strings.Contains(err.Error(), addr+": it is in use") {
			t.Errorf("listening twice: %v", err)
		}
		if u, ok := lis.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false) // as after kill -9
		}
		lis.Close()
		again, err := tracker.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tracker.Listen("unix:" + file); err == nil {
		t.Error("listening on a file that is no socket succeeded")
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("a file that is no socket became %q, %v", b, err)
	}
}

func TestServeAnswersOnBothListenersAndStops(t *testing.T) {
	dir := t.TempDir()
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(dir, "r.db"), bolt.Options{}))
	defer db.Close()
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: filepath.Join(dir, "a")}))
	rpc := must[net.Listener](t)(tracker.Listen("127.0.0.1:0"))
	web := must[net.Listener](t)(tracker.Listen("127.0.0.1:0"))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- tr.Serve(ctx, rpc, web) }()
	conn, err := agent.Dial(rpc.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	health, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health is %v, %v", health, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	page, err := client.Get("http://" + web.Addr().String() + "/healthz")
	if err != nil || page.StatusCode != http.StatusOK {
		t.Errorf("page is %v, %v", page, err)
	}
	page.Body.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestTrackerThatIsStoppedAtOnceEndsWell is a regression test: a tracker stopped before it started to serve reported
// a failure.
func TestTrackerThatIsStoppedAtOnceEndsWell(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		db := must[*bolt.DB](t)(bolt.Open(filepath.Join(dir, "r.db"), bolt.Options{}))
		tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: filepath.Join(dir, "a")}))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tr.Serve(ctx, must[net.Listener](t)(tracker.Listen("127.0.0.1:0")), nil); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
