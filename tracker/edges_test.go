package tracker_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

func TestRecordsComeAndGoOverTheWire(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	imported := func(rs ...*tilthv1.Record) (*tilthv1.ImportRecordsResponse, error) {
		stream := must[grpc.ClientStreamingClient[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]](t)(f.records.ImportRecords(t.Context()))
		for _, r := range rs {
			if err := stream.Send(&tilthv1.ImportRecordsRequest{Record: r}); err != nil {
				break
			}
		}
		return stream.CloseAndRecv()
	}
	a, b := record("a", 1), record("b", 2)
	if got, err := imported(a, b, a); err != nil || got.GetImported() != 2 || got.GetSkipped() != 1 {
		t.Errorf("imported %v, %v", got, err)
	}
	bad := record("c", 3)
	bad.Measurement.Error = tilthv1.ErrorClass_ERROR_CLASS_UNSPECIFIED
	_, err := imported(record("d", 4), bad)
	wantStatus(t, err, codes.InvalidArgument, "", "measurement.error")
	stream := must[grpc.ServerStreamingClient[tilthv1.ListRecordsResponse]](t)(f.records.ListRecords(t.Context(), &tilthv1.ListRecordsRequest{}))
	n := 0
	for ; ; n++ {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// unreadable is a collector whose only metric has no value.
type unreadable struct{}

func (unreadable) Describe(chan<- *prometheus.Desc) {}

func (unreadable) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("unreadable", "", nil, nil), errors.New("the disk cannot be read"))
}

// TestMetricsHealthAndStatusPage includes a metric that cannot be read, which must not hide the others.
func TestMetricsHealthAndStatusPage(t *testing.T) {
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(t.TempDir(), "r.db"), bolt.Options{}))
	defer db.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(unreadable{})
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: t.TempDir(), Registerer: registry}))
	must[*tilthv1.SubmitJobResponse](t)(tr.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")}))
	must[*tilthv1.JoinResponse](t)(tr.Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec("board <7>", tilthv1.AgentKind_AGENT_KIND_RUNNER)}))
	for path, wants := range map[string][]string{
		"/metrics": {
			`tilth_tracker_queue_depth{class="random",kind="tuner"} 1`, `tilth_tracker_open_jobs{state="queued"} 1`,
			`tilth_tracker_agents{kind="runner",state="idle"} 1`, `tilth_tracker_commit_seconds_count 2`,
		},
		"/healthz": {"ok"},
		"/":        {"resnet18"},
		"/devices": {"board &lt;7&gt;"},
	} {
		w := httptest.NewRecorder()
		tr.HTTPHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		for _, want := range wants {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d, lacks %s\n%s", path, w.Code, want, w.Body)
			}
		}
	}
}

func TestStoreThatCannotBeWrittenStopsTheTracker(t *testing.T) {
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(t.TempDir(), "r.db"), bolt.Options{MaxSizeBytes: 128 << 10}))
	defer db.Close()
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: db, ArtifactsDir: t.TempDir()}))
	ran := make(chan error, 1)
	go func() { ran <- tr.Run(context.Background()) }()
	big := spec("conv")
	big.Tasks[0].Workload = make([]byte, 1<<20)
	big.Tasks[0].WorkloadDigest = records.Digest(big.Tasks[0].Workload)
	_, err := tr.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: big})
	wantStatus(t, err, codes.Unavailable, wire.ReasonStopping, "tracker is stopping: write records file")
	if err := <-ran; err == nil || !strings.Contains(err.Error(), "write records file") {
		t.Errorf("Run ended with %v", err)
	}
	w := httptest.NewRecorder()
	tr.HTTPHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("health is %d", w.Code)
	}
}

// TestBestRecordsComeInPages is a regression test: all best records were in one message, which was too long for a
// large store.
func TestBestRecordsComeInPages(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	stream := must[grpc.ClientStreamingClient[tilthv1.ImportRecordsRequest, tilthv1.ImportRecordsResponse]](t)(f.records.ImportRecords(t.Context()))
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		r := record(name, int64(i+1))
		r.WorkloadDigest = records.Digest([]byte(name))
		if err := stream.Send(&tilthv1.ImportRecordsRequest{Record: r}); err != nil {
			t.Fatal(err)
		}
	}
	must[*tilthv1.ImportRecordsResponse](t)(stream.CloseAndRecv())
	all := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{})).GetRecords()
	for size := uint32(1); size <= 6; size++ {
		request, seen := &tilthv1.BestRecordsRequest{PageSize: size}, 0
		for {
			page := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), request))
			for _, r := range page.GetRecords() {
				if seen >= len(all) || r.GetWorkloadDigest() != all[seen].GetWorkloadDigest() {
					t.Fatalf("pages of %d: record %d is %v", size, seen, r)
				}
				seen++
			}
			if len(page.GetRecords()) > int(size) {
				t.Errorf("a page of %d has %d records", size, len(page.GetRecords()))
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				break
			}
		}
		if seen != len(all) || len(all) == 0 {
			t.Errorf("pages of %d: %d records, want %d", size, seen, len(all))
		}
	}
	_, err := f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{PageSize: 1, PageToken: "zz"})
	wantStatus(t, err, codes.InvalidArgument, "", `page_token: "zz" is not valid`)
}
