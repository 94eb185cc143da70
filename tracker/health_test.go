package tracker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

func TestTrackerSaysWhyItIsNotReady(t *testing.T) {
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(t.TempDir(), "r.db"), bolt.Options{}))
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: t.TempDir()}))
	expect := func(path string, code int, says string) {
		t.Helper()
		w := httptest.NewRecorder()
		tr.HTTPHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d, %s; want %d, %s", path, w.Code, w.Body, code, says)
		}
	}
	expect("/readyz", http.StatusOK, "ok")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	expect("/readyz", http.StatusServiceUnavailable, "the records file is not written")
	tr.Close()
	expect("/healthz", http.StatusOK, "ok") // a normal shutdown
	expect("/readyz", http.StatusServiceUnavailable, "the tracker is stopping")
}

// await watches a name in gRPC's health service until its status is want.
func await(ctx context.Context, t *testing.T, client healthv1.HealthClient, name string, want healthv1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	stream := must[healthv1.Health_WatchClient](t)(client.Watch(ctx, &healthv1.HealthCheckRequest{Service: name}))
	for {
		got, err := stream.Recv()
		if err != nil {
			t.Fatalf("%q never became %v: %v", name, want, err)
		}
		if got.GetStatus() == want {
			return
		}
	}
}

func TestHealthTellsWhatAgentsAreThere(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	client := healthv1.NewHealthClient(f.conn)
	const up, down = healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING
	const builds, measures = "tilth.v1.BuildService", "tilth.v1.MeasureService"
	await(ctx, t, client, "", up)
	await(ctx, t, client, builds, down)
	session := f.builder()
	await(ctx, t, client, builds, up)
	await(ctx, t, client, measures, down)
	f.runner()
	await(ctx, t, client, measures, up)
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(ctx, &tilthv1.LeaveRequest{Session: session}))
	await(ctx, t, client, builds, down)
}
