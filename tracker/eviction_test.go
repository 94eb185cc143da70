package tracker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// uploadBytes sends content in one message.
func (f *trackerFarm) uploadBytes(ctx context.Context, content string) (*tilthv1.ArtifactRef, error) {
	ref := &tilthv1.ArtifactRef{Role: "candidates", Digest: records.Digest([]byte(content)), SizeBytes: uint64(len(content))}
	stream, err := tilthv1.NewArtifactServiceClient(f.conn).UploadArtifact(ctx)
	if err != nil {
		return nil, err
	}
	// A failed Send only returns io.EOF; the response has the cause.
	_ = stream.Send(&tilthv1.UploadArtifactRequest{Digest: ref.GetDigest(), SizeBytes: ref.GetSizeBytes(), Data: []byte(content)})
	_, err = stream.CloseAndRecv()
	return ref, err
}

// TestEvictionTakesNothingThatALeaseNeeds fills a small store continuously. Artifacts of an accepted build report
// must remain until the batch is measured.
func TestEvictionTakesNothingThatALeaseNeeds(t *testing.T) {
	const sizeBytes, roomBytes = 10_000, 24 << 10
	batches := quickOr(20, 80)
	f := newFarm(t, tracker.Config{LeaseTimeout: time.Hour, Artifacts: artifact.Options{CapBytes: 4 * roomBytes}})
	f.submit("r", spec("conv"))
	search, builder, runner := f.mustLease(f.tuner()), f.builder(), f.runner()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	for k := range 3 {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = f.uploadBytes(ctx, fmt.Sprintf("%d of %d %s", n, k, strings.Repeat(".", sizeBytes))) // the store may be full
			}
		})
	}
	for n := range batches {
		f.propose(search.GetLease(), uint64(n), 0, fmt.Sprint("candidate ", n))
		w := f.mustLease(builder)
		r := &tilthv1.ReportBuildRequest{Lease: w.GetLease(), Outcomes: []*tilthv1.BuildOutcome{{Candidate: w.GetBuild().GetCandidates()[0].GetDigest(), Error: none}}}
		for {
			ref, err := f.uploadBytes(ctx, fmt.Sprintf("object %d %s", n, strings.Repeat(".", sizeBytes)))
			if code := status.Code(err); code == codes.ResourceExhausted || code == codes.Unavailable {
				continue // concurrent uploads use all space
			}
			if err != nil {
				t.Fatal(err)
			}
			r.Artifacts = []*tilthv1.ArtifactRef{ref}
			if _, err = f.build.ReportBuild(ctx, r); err == nil {
				break
			}
			if !agent.MissingArtifact(err) { // evicted before the report
				t.Fatal(err)
			}
		}
		measure := f.mustLease(runner)
		for range 20 {
			stat := must[*tilthv1.StatArtifactResponse](t)(tilthv1.NewArtifactServiceClient(f.conn).StatArtifact(ctx,
				&tilthv1.StatArtifactRequest{Digest: measure.GetMeasure().GetArtifacts()[0].GetDigest()}))
			if !stat.GetComplete() {
				t.Fatalf("batch %d: its object was evicted", n)
			}
		}
		f.report(measure.GetLease(), ok(measure.GetMeasure().GetCandidates()[0], 1))
	}
}
