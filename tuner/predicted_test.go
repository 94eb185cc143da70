package tuner

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestPredictionsAreOnTheScaleOfWhatWasMeasured uses a device that is a thousand times slower. Nothing is predicted
// while the scale is unknown.
func TestPredictionsAreOnTheScaleOfWhatWasMeasured(t *testing.T) {
	for _, seconds := range []float64{1e-6, 1e-3} {
		s := spaceOf(t, kerneltest.Product(t, 64, 96, 64), testTarget(t), schedule.Default)
		search, err := NewSearch(s, nil, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		predicted := 0
		for round := range 4 {
			for k, c := range search.Propose(8) {
				switch p := c.PredictedSeconds; {
				case round == 0 && p != 0:
					t.Errorf("before any trial, %v s are predicted", p)
				case p != 0 && math.Abs(math.Log2(p/seconds)) > 5:
					t.Errorf("%v s are predicted where trials take about %v", p, seconds)
				case p > 0:
					predicted++
				}
				search.Observe(Trial{Digest: c.Digest, Origin: c.Origin, LatencySeconds: seconds * (1 + float64(k)/8)})
			}
		}
		if predicted == 0 {
			t.Error("nothing is predicted")
		}
	}
}

// TestPredictionsAreRecordedWithTrials covers only candidates picked by the model.
func TestPredictionsAreRecordedWithTrials(t *testing.T) {
	f := newFarm(t)
	f.start("builder", builderKind, agent.HandlerFunc(f.build))
	f.start("runner", runnerKind, f.measure(fast))
	f.start("tuner", tunerKind, f.tuner())
	for tuner, want := range map[string]bool{Best: true, "random": false} {
		spec := f.spec(&tilthv1.Budget{Trials: 32}, kerneltest.Product(t, 64, 64, 64))
		spec.Tuner = tuner
		client := tilthv1.NewJobServiceClient(f.conn)
		response, err := client.SubmitJob(f.ctx, &tilthv1.SubmitJobRequest{RequestId: tuner, Spec: spec})
		check(t, err)
		f.wait(response.GetJob(), nil)
		stream, err := client.WatchJob(f.ctx, &tilthv1.WatchJobRequest{JobId: response.GetJob().GetId()})
		check(t, err)
		predicted := 0
		for {
			m, err := stream.Recv()
			if err != nil {
				break
			}
			if m.GetEvent().GetTrial().GetPredictedSeconds() > 0 {
				predicted++
			}
		}
		if predicted > 0 != want {
			t.Errorf("of trials of %s %d were predicted", tuner, predicted)
		}
	}
}
