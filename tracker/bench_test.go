package tracker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tilth-dev/tilth/artifact"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// BenchmarkReport measures how many results a second become durable when many runners report at the same time: each
// operation is one result of one batch in a record, an event, the task's progress and the closed lease, synced to disk.
func BenchmarkReport(b *testing.B) {
	for _, runners := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("runners=%d", runners), func(b *testing.B) { benchmarkReport(b, runners) })
	}
}

func benchmarkReport(b *testing.B, runners int) {
	db := must[*records.DB](b)(records.Open(filepath.Join(b.TempDir(), "r.db"), records.Options{}))
	defer db.Close()
	dir := b.TempDir()
	object := must[*artifact.Store](b)(artifact.Open(artifact.Options{Dir: dir}))
	digest := records.Digest([]byte("object"))
	if err := object.Put(b.Context(), digest, 6, 0, strings.NewReader("object")); err != nil {
		b.Fatal(err)
	}
	tr := must[*tracker.Tracker](b)(tracker.New(tracker.Config{Store: db, ArtifactsDir: dir}))
	work := measureWork(b, tr, b.N, &tilthv1.ArtifactRef{Role: "candidates", Digest: digest, SizeBytes: 6})
	b.ResetTimer()
	var all sync.WaitGroup
	for r := range runners {
		all.Go(func() {
			for i := r; i < b.N; i += runners {
				w := work[i]
				_, err := tr.ReportMeasurements(context.Background(), &tilthv1.ReportMeasurementsRequest{
					Lease: w.GetLease(), Measurements: []*tilthv1.Measurement{ok(w.GetMeasure().GetCandidates()[0], 0.001)},
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "results/s")
}

// measureWork makes n batches of one candidate and leases them to a runner.
func measureWork(b *testing.B, tr *tracker.Tracker, n int, artifact *tilthv1.ArtifactRef) []*tilthv1.LeaseWorkResponse {
	ctx := context.Background()
	must[*tilthv1.SubmitJobResponse](b)(tr.SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")}))
	session := map[tilthv1.AgentKind]string{}
	for _, kind := range []tilthv1.AgentKind{tilthv1.AgentKind_AGENT_KIND_TUNER, tilthv1.AgentKind_AGENT_KIND_BUILDER, tilthv1.AgentKind_AGENT_KIND_RUNNER} {
		session[kind] = must[*tilthv1.JoinResponse](b)(tr.Join(ctx, &tilthv1.JoinRequest{Spec: agentSpec(kind.String(), kind)})).GetSession()
	}
	lease := func(kind tilthv1.AgentKind) *tilthv1.LeaseWorkResponse {
		return must[*tilthv1.LeaseWorkResponse](b)(tr.LeaseWork(ctx, &tilthv1.LeaseWorkRequest{Session: session[kind]}))
	}
	tuner := lease(tilthv1.AgentKind_AGENT_KIND_TUNER).GetLease()
	work := make([]*tilthv1.LeaseWorkResponse, n)
	var all sync.WaitGroup
	turn := make(chan int, n)
	for i := range n {
		must[*tilthv1.ProposeBatchResponse](b)(tr.ProposeBatch(ctx, &tilthv1.ProposeBatchRequest{
			Lease: tuner, Proposal: uint64(i), Candidates: candidates(fmt.Sprintf("%0300d", i)),
		}))
		turn <- i
	}
	close(turn)
	for range 256 {
		all.Go(func() {
			for i := range turn {
				w := lease(tilthv1.AgentKind_AGENT_KIND_BUILDER)
				must[*tilthv1.ReportBuildResponse](b)(tr.ReportBuild(ctx, &tilthv1.ReportBuildRequest{
					Lease:     w.GetLease(),
					Outcomes:  []*tilthv1.BuildOutcome{{Candidate: w.GetBuild().GetCandidates()[0].GetDigest(), Error: none}},
					Artifacts: []*tilthv1.ArtifactRef{artifact},
				}))
				work[i] = lease(tilthv1.AgentKind_AGENT_KIND_RUNNER)
			}
		})
	}
	all.Wait()
	return work
}
