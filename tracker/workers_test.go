package tracker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

var errAllRecorded = errors.New("all trials are recorded")

// workers simulates all kinds of agents, without a compiler or device.
type workers struct {
	conn   grpc.ClientConnInterface
	upload func(ctx context.Context, path string) (*tilthv1.ArtifactRef, error)
	dir    string
}

func (w *workers) logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (w *workers) handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	switch v := work.GetWork().(type) {
	case *tilthv1.LeaseWorkResponse_Search:
		return w.tune(ctx, work.GetLease(), v.Search.GetJob())
	case *tilthv1.LeaseWorkResponse_Build:
		return w.compile(ctx, work.GetLease(), v.Build)
	case *tilthv1.LeaseWorkResponse_Measure:
		return w.time(ctx, work.GetLease(), v.Measure)
	}
	return fmt.Errorf("unknown work %v", work)
}

// tune proposes all batches from the first one, like a tuner without state, and waits for their trials.
func (w *workers) tune(ctx context.Context, lease *tilthv1.LeaseToken, job *tilthv1.Job) error {
	search := tilthv1.NewSearchServiceClient(w.conn)
	for n := range uint64(killBatches()) {
		var names []string
		for i := range killBatchSize() {
			names = append(names, fmt.Sprintf("candidate %d of batch %d", i, n))
		}
		err := agent.Report(ctx, w.logger(), "ProposeBatch", func(ctx context.Context) error {
			_, err := search.ProposeBatch(ctx, &tilthv1.ProposeBatchRequest{Lease: lease, Proposal: n, Candidates: candidates(names...)})
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := w.awaitTrials(ctx, job.GetId()); err != nil {
		return err
	}
	return agent.Report(ctx, w.logger(), "FinishJob", func(ctx context.Context) error {
		_, err := search.FinishJob(ctx, &tilthv1.FinishJobRequest{Lease: lease, State: tilthv1.JobState_JOB_STATE_DONE})
		return err
	})
}

// awaitTrials waits until all trials are recorded.
func (w *workers) awaitTrials(ctx context.Context, id string) error {
	trials := 0
	err := agent.Watch(ctx, w.conn, w.logger(), &tilthv1.WatchJobRequest{JobId: id}, func(e *tilthv1.JobEvent) error {
		if e.GetTrial() != nil {
			trials++
		}
		if trials == killBatches()*killBatchSize() {
			return errAllRecorded
		}
		return nil
	}, nil)
	if errors.Is(err, errAllRecorded) {
		return nil
	}
	return fmt.Errorf("%d trials are recorded: %w", trials, err)
}

func (w *workers) compile(ctx context.Context, lease *tilthv1.LeaseToken, b *tilthv1.BuildWork) error {
	path := filepath.Join(w.dir, records.Digest([]byte(b.GetBatchId())))
	if err := os.WriteFile(path, []byte(b.GetBatchId()), 0o600); err != nil {
		return err
	}
	ref, err := w.upload(ctx, path)
	if err != nil {
		return err
	}
	r := &tilthv1.ReportBuildRequest{Lease: lease, Artifacts: []*tilthv1.ArtifactRef{ref}}
	for _, c := range b.GetCandidates() {
		r.Outcomes = append(r.Outcomes, &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: none})
	}
	return agent.Report(ctx, w.logger(), "ReportBuild", func(ctx context.Context) error {
		_, err := tilthv1.NewBuildServiceClient(w.conn).ReportBuild(ctx, r)
		return err
	})
}

// time reports every trial separately.
func (w *workers) time(ctx context.Context, lease *tilthv1.LeaseToken, m *tilthv1.MeasureWork) error {
	for _, c := range m.GetCandidates() {
		err := agent.Report(ctx, w.logger(), "ReportMeasurements", func(ctx context.Context) error {
			_, err := tilthv1.NewMeasureServiceClient(w.conn).ReportMeasurements(ctx, &tilthv1.ReportMeasurementsRequest{
				Lease: lease, Measurements: []*tilthv1.Measurement{ok(c, 0.001)},
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
