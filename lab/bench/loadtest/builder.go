package loadtest

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// errInfra simulates a failure of the builder or device itself.
var errInfra = errors.New("simulated failure")

// build takes as long as a real build, and reports some candidates as refused by the compiler.
func (f *fleet) build(ctx context.Context, l *line, token *tilthv1.LeaseToken, work *tilthv1.BuildWork) error {
	if err := retry.Sleep(ctx, l.dice.around(f.BuildTime)); err != nil {
		return err
	}
	if l.dice.happens(f.Failures.Infra) {
		return errInfra
	}
	report := &tilthv1.ReportBuildRequest{Lease: token}
	var failed []uint32
	for _, c := range work.GetCandidates() {
		o := &tilthv1.BuildOutcome{Candidate: c.GetDigest(), Error: tilthv1.ErrorClass_ERROR_CLASS_NONE, BuildSeconds: f.BuildTime.Seconds() / float64(f.Batch)}
		if l.dice.happens(f.Failures.Build) {
			o.Error, o.Message = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, "simulated: the compiler refused it"
			failed = append(failed, c.GetTrial())
		}
		report.Outcomes = append(report.Outcomes, o)
	}
	if len(failed) < len(work.GetCandidates()) {
		report.Artifacts = []*tilthv1.ArtifactRef{f.object}
	}
	client := tilthv1.NewBuildServiceClient(l)
	var by peer.Peer
	err := agent.Report(ctx, f.log, "ReportBuild", func(ctx context.Context) error {
		_, err := client.ReportBuild(ctx, report, grpc.Peer(&by))
		return err
	})
	if err != nil {
		return err
	}
	return f.recorded(work.GetJobId(), work.GetTask(), failed, by.Addr)
}
