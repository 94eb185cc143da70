package farm

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/tracker"
)

// nowhere is an address with any free port.
const nowhere = "127.0.0.1:0"

// bucket serves an empty bucket at an address with a status code, and returns its URL.
func bucket(t *testing.T, address string, status int) string {
	t.Helper()
	lis, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = w.Write([]byte(`<ListBucketResult><Name>farm</Name><IsTruncated>false</IsTruncated></ListBucketResult>`))
		}
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

// TestTrackerWaitsForItsObjectStore is a regression test: a tracker exited if its object store was unavailable at
// the start. It still exits if the store refuses it.
func TestTrackerWaitsForItsObjectStore(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "tilth")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	free, err := net.Listen("tcp", nowhere)
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	web := "unix:" + filepath.Join(dir, "web")
	ready := make(chan struct{})
	cfg := TrackerConfig{
		Store: "memory", Listen: "unix:" + filepath.Join(dir, "sock"), HTTP: web, ObjectStore: "s3://farm?region=eu&endpoint=http://" + address,
		Tracker: tracker.Config{ArtifactsDir: filepath.Join(dir, "artifacts"), Logger: slog.New(slog.DiscardHandler)},
		Ready:   func(net.Addr, net.Addr) { close(ready) },
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- RunTracker(ctx, cfg) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(web, "unix:"))
	}}}
	defer client.CloseIdleConnections()
	for end := time.Now().Add(10 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		response, err := client.Get("http://tracker/healthz")
		if err == nil {
			response.Body.Close()
		}
		if err == nil && response.StatusCode == http.StatusOK {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v", err)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("it does not live: %v", err)
		}
	}
	response, err := client.Get("http://tracker/readyz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("it is ready: %s", response.Status)
	}
	bucket(t, address, http.StatusOK)
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it ended with %v", err)
	case <-time.After(10 * time.Minute):
		t.Fatal("it does not serve")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTrackerEndsWhereItsObjectStoreRefusesIt(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "tilth")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	at := bucket(t, nowhere, http.StatusForbidden)
	dir := t.TempDir()
	err := RunTracker(t.Context(), TrackerConfig{
		Store: "memory", Listen: "unix:" + filepath.Join(dir, "sock"), ObjectStore: "s3://farm?region=eu&endpoint=http://" + at,
		Tracker: tracker.Config{ArtifactsDir: filepath.Join(dir, "artifacts"), Logger: slog.New(slog.DiscardHandler)},
	})
	if !errors.Is(err, artifact.ErrAway) || !s3.IsAddressError(err) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("it ends with %v", err)
	}
}
