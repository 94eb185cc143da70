package tuner

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// ahead is a connection whose third proposal has a later number, like that of a tuner that knows proposals missing
// from a restored backup.
type ahead struct {
	grpc.ClientConnInterface
	proposals int
}

func (a *ahead) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if r, ok := args.(*tilthv1.ProposeBatchRequest); ok {
		if a.proposals++; a.proposals == 3 {
			r.Proposal += 7
		}
	}
	return a.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// TestTunerRereadsAReplacedHistory is a regression test: the job failed with an error about the tuner's proposals.
func TestTunerRereadsAReplacedHistory(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, NewHandler(Config{Conn: &ahead{ClientConnInterface: f.conn}, BatchSize: 4}))
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 50}, kerneltest.Product(t, 64, 64, 64)), nil)
	if job.GetState() != tilthv1.JobState_JOB_STATE_DONE || job.GetProgress()[0].GetTrials() != 50 {
		t.Errorf("job ended %v with %d trials of 50: %s", job.GetState(), job.GetProgress()[0].GetTrials(), job.GetReason())
	}
}
