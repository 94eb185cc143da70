package web

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestTimeLeftIsWhatTheBudgetLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		budget                *tilthv1.Budget
		spentSeconds, inTrial int
		ended                 bool
		want                  string
	}{
		"no budget of time, and nothing done": {budget: &tilthv1.Budget{Trials: 10}},
		"trials at the pace so far":           {budget: &tilthv1.Budget{Trials: 10}, spentSeconds: 60, inTrial: 6, want: "about 0:40"},
		"all trials done":                     {budget: &tilthv1.Budget{Trials: 10}, spentSeconds: 60, inTrial: 12, want: "about 0:00"},
		"time alone":                          {budget: budget(90, 0), spentSeconds: 60, inTrial: 6, want: "0:30"},
		"time that ends before the trials":    {budget: budget(90, 100), spentSeconds: 60, inTrial: 6, want: "0:30"},
		"trials that end before the time":     {budget: budget(600, 7), spentSeconds: 60, inTrial: 6, want: "about 0:10"},
		"more than the budget was spent":      {budget: budget(30, 0), spentSeconds: 60, want: "0:00"},
		"a job that has ended":                {budget: budget(90, 0), ended: true},
	} {
		job := &tilthv1.Job{Spec: &tilthv1.JobSpec{Budget: c.budget}, TimeSpent: durationpb.New(time.Duration(c.spentSeconds) * time.Second)}
		if c.ended {
			job.EndedAt = timestamppb.Now()
		}
		if got := remainingTime(job, uint32(c.inTrial)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func budget(seconds time.Duration, trials uint32) *tilthv1.Budget {
	return &tilthv1.Budget{Time: durationpb.New(seconds * time.Second), Trials: trials}
}
