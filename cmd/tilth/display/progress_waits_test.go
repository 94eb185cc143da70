package display

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestDisplaysReportWhatAJobWaitsFor also checks that the budget's time stops meanwhile.
func TestDisplaysReportWhatAJobWaitsFor(t *testing.T) {
	tally := newTally()
	tally.Status = &tilthv1.JobStatus{
		Wait: &tilthv1.Wait{Reason: tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, Message: "no device is joined"}, TimeSpent: durationpb.New(10 * time.Second),
	}
	tally.StatusAt = tally.Started.Add(20 * time.Second)
	budget := Budget{Time: time.Minute}
	text := func() string { return strings.Join(take(tally).parts(budget, 50*time.Second), "  ") }
	if got := text(); !strings.Contains(got, "0:10/1:00  left 0:50  waiting: no device is joined") {
		t.Errorf("it says %s", got)
	}
	tally.Status = &tilthv1.JobStatus{TimeSpent: durationpb.New(10 * time.Second), TimeRuns: true}
	if got := text(); !strings.Contains(got, "0:40/1:00  left 0:20") || strings.Contains(got, "waiting") {
		t.Errorf("when it goes on it says %s", got)
	}
}

func TestSparseReportsAWaitOnce(t *testing.T) {
	var out bytes.Buffer
	d := NewSparse(&out, Budget{Trials: 10}, 10*time.Second)
	tally := newTally()
	for _, message := range []string{"board is cordoned", "board is cordoned still"} {
		tally.Status = &tilthv1.JobStatus{Wait: &tilthv1.Wait{Reason: tilthv1.WaitReason_WAIT_REASON_CORDONED, Message: message}}
		d.Update(tally)
	}
	if got := out.String(); got != "waiting: board is cordoned\n" {
		t.Errorf("it says %q", got)
	}
}
