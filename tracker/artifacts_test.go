package tracker_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// rot flips a bit of an artifact without changing the file's metadata, except that its last check is long ago.
func (f *trackerFarm) rot(digest string) {
	f.Helper()
	path := filepath.Join(f.dir, "artifacts", digest[:2], digest)
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	b[0] ^= 1
	long := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(path, b, 0o644), os.Chtimes(path, long, long)); err != nil {
		f.Fatal(err)
	}
}

// download reads a whole artifact.
func (f *trackerFarm) download(digest string) error {
	f.Helper()
	stream, err := tilthv1.NewArtifactServiceClient(f.conn).DownloadArtifact(f.Context(), &tilthv1.DownloadArtifactRequest{Digest: digest})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func TestBatchesWhoseArtifactIsDamagedAreBuiltAgain(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r", spec("conv"))
	search, builder := f.mustLease(f.tuner()), f.builder()
	for n, name := range []string{"held", "waiting", "whole"} {
		f.propose(search.GetLease(), uint64(n), 0, name)
		f.reportBuild(f.buildReport(f.mustLease(builder)))
	}
	runner := f.runner()
	held := f.mustLease(runner)
	of := func(batch string) string { return f.upload("built " + batch).GetDigest() }
	job := held.GetMeasure().GetJobId()
	for _, batch := range []string{held.GetMeasure().GetBatchId(), job + ".00000001"} {
		digest := of(batch)
		f.rot(digest)
		if err := f.download(digest); status.Code(err) != codes.DataLoss {
			t.Errorf("a damaged artifact was served: %v", err)
		}
		if err := f.download(digest); status.Code(err) != codes.NotFound {
			t.Errorf("it is still there: %v", err)
		}
	}
	f.restart()
	// A waiting batch is rebuilt in its turn; a leased one is rebuilt once the runner reports the missing artifact.
	again := f.mustLease(builder)
	if got := again.GetBuild().GetBatchId(); got != job+".00000001" {
		t.Fatalf("the builder was given %s", got)
	}
	if whole := f.mustLease(runner); whole.GetMeasure().GetBatchId() != job+".00000002" {
		t.Errorf("the runner was given %s", whole.GetMeasure().GetBatchId())
	}
	must[*tilthv1.ReportMeasurementsResponse](t)(f.measure.ReportMeasurements(f.Context(), &tilthv1.ReportMeasurementsRequest{
		Lease: held.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, InfraMessage: "artifact not found",
	}))
	if got := f.mustLease(builder).GetBuild().GetBatchId(); got != held.GetMeasure().GetBatchId() {
		t.Errorf("the builder was given %s", got)
	}
	f.reportBuild(f.buildReport(again))
	measured := f.mustLease(runner)
	if err := f.download(measured.GetMeasure().GetArtifacts()[0].GetDigest()); err != nil || measured.GetMeasure().GetBatchId() != again.GetBuild().GetBatchId() {
		t.Errorf("built again, the runner is given %s, and gets %v", measured.GetMeasure().GetBatchId(), err)
	}
}

// TestScrubberSendsABatchBackToItsBuilder checks that a damaged artifact is found although no runner requests it.
func TestScrubberSendsABatchBackToItsBuilder(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Artifacts: artifact.Options{ScrubBytes: 1 << 30, ScrubEvery: time.Nanosecond}})
	f.submit("r", spec("conv"))
	search, builder := f.mustLease(f.tuner()), f.builder()
	f.propose(search.GetLease(), 0, 0, "a")
	built := f.buildReport(f.mustLease(builder))
	f.reportBuild(built)
	f.stop()
	f.rot(built.GetArtifacts()[0].GetDigest())
	f.cfg.Registerer = registry
	f.start()
	w := must[*tilthv1.LeaseWorkResponse](t)(f.agents.LeaseWork(f.Context(), &tilthv1.LeaseWorkRequest{Session: builder, Wait: seconds(20)}))
	if w.GetBuild() == nil {
		t.Fatal("the builder was given nothing")
	}
	if n := gauge(t, registry, "artifacts_dropped_total"); n != 1 {
		t.Errorf("%v artifacts were dropped", n)
	}
}

func TestRunWhosePackageIsDamagedEndsAndSaysWhy(t *testing.T) {
	for name, leased := range map[string]bool{"waiting": false, "with a runner": true} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, tracker.Config{})
			job := f.submit("r", f.runSpec(""))
			digest := job.GetSpec().GetRun().GetPackages()[0].GetArtifact().GetDigest()
			var w *tilthv1.LeaseWorkResponse
			if leased {
				w = f.mustLease(f.able("board"))
			}
			f.rot(digest)
			if err := f.download(digest); status.Code(err) != codes.DataLoss {
				t.Fatalf("a damaged artifact was served: %v", err)
			}
			if leased {
				f.reportRun(&tilthv1.ReportRunRequest{
					Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, InfraMessage: "artifact not found",
				})
			}
			ended := f.job(job.GetId())
			if ended.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.Contains(ended.GetReason(), digest+" was damaged: run it again") {
				t.Errorf("the job is %v: %s", ended.GetState(), ended.GetReason())
			}
		})
	}
}

// TestUploadsBelongToWhoCalls interrupts an upload that other callers then request.
func TestUploadsBelongToWhoCalls(t *testing.T) {
	c := newClosed(t, false)
	c.stop()
	registry := prometheus.NewRegistry()
	c.cfg.Registerer = registry
	c.start()
	content := strings.Repeat("x", 20<<10)
	digest := records.Digest([]byte(content + "and more"))
	ctx, breakOff := context.WithCancel(t.Context())
	stream := must[grpc.ClientStreamingClient[tilthv1.UploadArtifactRequest, tilthv1.UploadArtifactResponse]](t)(
		tilthv1.NewArtifactServiceClient(c.as("anna")).UploadArtifact(ctx))
	c.check(stream.Send(&tilthv1.UploadArtifactRequest{Digest: digest, SizeBytes: uint64(len(content)) + 8, Data: []byte(content)}))
	for gauge(t, registry, "artifacts_unfinished_bytes") < 32<<10 { // until all of it has arrived
		if t.Context().Err() != nil {
			t.Fatal("it never came")
		}
	}
	breakOff()
	for gauge(t, registry, "artifacts_unfinished_bytes") > 0 {
		for name, want := range map[string]uint64{"ben": 0, "alice": 0, "anna": uint64(len(content))} {
			stat := must[*tilthv1.StatArtifactResponse](t)(tilthv1.NewArtifactServiceClient(c.as(name)).StatArtifact(t.Context(),
				&tilthv1.StatArtifactRequest{Digest: digest}))
			if stat.GetReceivedBytes() != want && want == 0 {
				t.Fatalf("%s is told of %d bytes of anna's", name, stat.GetReceivedBytes())
			} else if stat.GetReceivedBytes() == want && want > 0 {
				return
			}
		}
	}
	t.Error("what came of anna's upload is gone")
}
