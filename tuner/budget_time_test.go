package tuner

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func timed(limit time.Duration) *tilthv1.JobSpec {
	return &tilthv1.JobSpec{Budget: &tilthv1.Budget{Time: durationpb.New(limit)}}
}

// TestTrackersClockDecidesOverABudget regardless of the local clock and of time in which no agent can work.
func TestTrackersClockDecidesOverABudget(t *testing.T) {
	b := newBudgetTime(&tilthv1.SearchWork{
		Job: &tilthv1.Job{Spec: timed(time.Minute), StartedAt: timestamppb.New(time.Now().Add(-time.Hour))}, TimeLeft: durationpb.New(40 * time.Second),
	})
	at := func(d time.Duration) time.Time { return b.reportedAt.Add(d) }
	if left, limited := b.leftAt(at(10 * time.Second)); left != 30*time.Second || !limited {
		t.Errorf("left are %v", left)
	}
	b.applyStatus(&tilthv1.JobStatus{TimeSpent: durationpb.New(35 * time.Second)}, at(15*time.Second))
	if left, _ := b.leftAt(at(time.Hour)); left != 25*time.Second {
		t.Errorf("while nothing can be done, left are %v", left)
	}
	b.applyStatus(&tilthv1.JobStatus{TimeSpent: durationpb.New(35 * time.Second), TimeRuns: true}, at(20*time.Second))
	if left, _ := b.leftAt(b.reportedAt.Add(5 * time.Second)); left != 20*time.Second {
		t.Errorf("when it goes on, left are %v", left)
	}
}
