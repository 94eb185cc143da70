package tuner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// changing is a device that becomes five per cent slower after a number of batches.
type changing struct {
	*farm
	after   int
	mu      sync.Mutex
	batches int
}

// watched measures and then reports calibrations of the device.
func (c *changing) watched(measure agent.Handler) agent.HandlerFunc {
	return func(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.batches == 0 {
			if err := c.calibrate(ctx, work.GetLease().GetSession(), 5, 1); err != nil {
				return err
			}
		}
		err := measure.Handle(ctx, work)
		if c.batches++; c.batches == c.after {
			err = errors.Join(err, c.calibrate(ctx, work.GetLease().GetSession(), 3, 1.05))
		}
		return err
	}
}

func (c *changing) calibrate(ctx context.Context, session string, n int, seconds float64) error {
	for range n {
		_, err := tilthv1.NewDeviceServiceClient(c.conn).ReportCalibration(ctx, &tilthv1.ReportCalibrationRequest{
			Session: session,
			Report:  &tilthv1.CalibrationReport{Kernels: "k", ComputeSeconds: []float64{seconds}, MemorySeconds: []float64{seconds}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestBestOfADeviceThatChangedIsMeasuredAgain uses a first candidate with a lucky measurement. It must lose its
// place long before the finalists' race, and the records of its second measurement must have the reason. The
// remeasurement counts against the job's trials.
func TestBestOfADeviceThatChangedIsMeasuredAgain(t *testing.T) {
	f := newFarm(t)
	w := &twice{seen: map[string]bool{}}
	device := &changing{farm: f, after: 2}
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, device.watched(f.measure(w.verdict)))
	f.start("tuner", tunerKind, f.tuner())
	job := f.wait(f.submit(&tilthv1.Budget{Trials: 80}, kerneltest.Product(t, 64, 64, 64)), nil)
	p := job.GetProgress()[0]
	if p.GetTrials() != 80 || p.GetBestSeconds() != 1e-3 || p.GetBest().GetCandidate().GetDigest() == w.first {
		t.Errorf("after %d trials the best is %v", p.GetTrials(), p.GetBest())
	}
	stream, err := tilthv1.NewJobServiceClient(f.conn).WatchJob(f.ctx, &tilthv1.WatchJobRequest{JobId: job.GetId()})
	check(t, err)
	suspected, remeasured := 0, 0
	for {
		response, err := stream.Recv()
		if err != nil {
			break
		}
		e := response.GetEvent()
		switch m := e.GetTrial().GetMeasurement(); {
		case e.GetSuspected() != nil:
			suspected++
		case m.GetRemeasured() != "":
			remeasured++
			if !strings.Contains(m.GetRemeasured(), "runner: the device changed by 5.0 %") {
				t.Errorf("a record says %q", m.GetRemeasured())
			}
		}
	}
	if suspected != 1 || remeasured != 4 {
		t.Errorf("%d bests were in doubt and %d candidates measured again, want 1 and 4", suspected, remeasured)
	}
}

// TestSuspectedBestsSurviveATuner checks that the state only depends on the events.
func TestSuspectedBestsSurviveATuner(t *testing.T) {
	j := &job{inFlight: map[string]int{}, races: map[string]race{}, batches: map[string]bool{}}
	best := &tilthv1.Candidate{Digest: "best"}
	j.tasks = []*task{{}, {rivals: rivals{list: []rival{{candidate: best}, {candidate: &tilthv1.Candidate{Digest: "rival"}}}}}}
	j.apply(&tilthv1.JobEvent{Event: &tilthv1.JobEvent_Suspected{Suspected: &tilthv1.MeasurementSuspected{TaskIndex: 1, Candidate: best, Reason: "why"}}})
	b := j.remeasure()
	if b == nil || b.task != j.tasks[1] || len(b.wire()) != 2 || b.wire()[0] != best || b.mode() != tilthv1.BatchMode_BATCH_MODE_FINALISTS {
		t.Fatalf("the batch is %+v", b)
	}
	j.apply(&tilthv1.JobEvent{Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{
		BatchId: "b", TaskIndex: 1, Candidates: b.wire(), Mode: b.mode(), Remeasured: b.remeasured,
	}}})
	if j.remeasure() != nil || j.tasks[1].rivals.raced {
		t.Error("the doubt is not settled by the batch, or the race of finalists is")
	}
}
