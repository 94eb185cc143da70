package tracker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/postgres"
	"github.com/tilth-dev/tilth/tracker"
)

// benchmarkBatch is the number of candidates per proposal.
const benchmarkBatch = 32

// BenchmarkBatch measures a batch of 32 candidates from its proposal to its last result, synced to disk, at various
// numbers of concurrent batches. It calls the services directly, without gRPC.
func BenchmarkBatch(b *testing.B) {
	for _, underWay := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("batches=%d", underWay), func(b *testing.B) {
			benchmarkBatches(b, underWay, must[*bolt.DB](b)(bolt.Open(filepath.Join(b.TempDir(), "r.db"), bolt.Options{})))
		})
	}
}

// BenchmarkBatchOnDatabase does the same with a local PostgreSQL server.
func BenchmarkBatchOnDatabase(b *testing.B) {
	server, _ := pgserver.ForTest(b)
	if err := server.Set(b.Context(), "fsync", "on"); err != nil {
		b.Fatal(err)
	}
	for _, underWay := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("batches=%d", underWay), func(b *testing.B) {
			address := must[string](b)(server.Database())
			benchmarkBatches(b, underWay, must[*postgres.DB](b)(postgres.Open(address, postgres.Options{})))
		})
	}
}

func benchmarkBatches(b *testing.B, underWay int, db records.Store) {
	tr, object := trackerWithObject(b, db)
	join := func(kind tilthv1.AgentKind) string {
		return must[*tilthv1.JoinResponse](b)(tr.Join(b.Context(), &tilthv1.JoinRequest{Spec: agentSpec(kind.String(), kind)})).GetSession()
	}
	tuner, builder, runner := join(tilthv1.AgentKind_AGENT_KIND_TUNER), join(tilthv1.AgentKind_AGENT_KIND_BUILDER), join(tilthv1.AgentKind_AGENT_KIND_RUNNER)
	lease := func(session string) *tilthv1.LeaseWorkResponse {
		return must[*tilthv1.LeaseWorkResponse](b)(tr.LeaseWork(context.Background(), &tilthv1.LeaseWorkRequest{Session: session}))
	}
	// One job per batch, because a job's proposals are sequential.
	jobs := make([]*tilthv1.LeaseToken, underWay)
	for i := range jobs {
		s := spec("conv")
		s.Budget.Trials = 1 << 30
		must[*tilthv1.SubmitJobResponse](b)(tr.SubmitJob(b.Context(), &tilthv1.SubmitJobRequest{RequestId: fmt.Sprint(i), Spec: s}))
		jobs[i] = lease(tuner).GetLease()
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i, job := range jobs {
		all.Go(func() {
			for n := 0; i+n*underWay < b.N; n++ {
				names := make([]string, benchmarkBatch)
				for c := range names {
					names[c] = fmt.Sprintf("%0300d", (i+n*underWay)*benchmarkBatch+c)
				}
				must[*tilthv1.ProposeBatchResponse](b)(tr.ProposeBatch(context.Background(), &tilthv1.ProposeBatchRequest{
					Lease: job, Proposal: uint64(n), Candidates: candidates(names...),
				}))
				work := lease(builder)
				built := &tilthv1.ReportBuildRequest{Lease: work.GetLease(), Artifacts: []*tilthv1.ArtifactRef{object}}
				for _, c := range work.GetBuild().GetCandidates() {
					built.Outcomes = append(built.Outcomes, &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: none})
				}
				must[*tilthv1.ReportBuildResponse](b)(tr.ReportBuild(context.Background(), built))
				work = lease(runner)
				measured := &tilthv1.ReportMeasurementsRequest{Lease: work.GetLease()}
				for _, c := range work.GetMeasure().GetCandidates() {
					measured.Measurements = append(measured.Measurements, ok(c, 0.001))
				}
				must[*tilthv1.ReportMeasurementsResponse](b)(tr.ReportMeasurements(context.Background(), measured))
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N*benchmarkBatch)/b.Elapsed().Seconds(), "results/s")
}

// trackerWithObject returns a tracker, whose cleanup closes the store, and an uploaded artifact.
func trackerWithObject(b *testing.B, db records.Store) (*tracker.Tracker, *tilthv1.ArtifactRef) {
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	dir := b.TempDir()
	store := must[*artifact.Store](b)(artifact.Open(artifact.Options{Dir: dir}))
	digest := records.Digest([]byte("object"))
	if err := store.Put(b.Context(), artifact.Upload{Digest: digest, SizeBytes: 6}, strings.NewReader("object")); err != nil {
		b.Fatal(err)
	}
	tr := must[*tracker.Tracker](b)(tracker.New(tracker.Config{Store: db, ArtifactsDir: dir}))
	return tr, &tilthv1.ArtifactRef{Role: "candidates", Digest: digest, SizeBytes: 6}
}
