package farm_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	"github.com/tilth-dev/tilth/tuner/jobclient"
	"github.com/tilth-dev/tilth/tuner/progress"
)

// doubles returns a model with one small task.
func doubles() *onnx.Model {
	return modeltest.New().Input("x", 8, 8).Known("two", array.FromFloat32([]float32{2})).Node("y = Mul x two").Output("y")
}

// startFarm starts a farm with one thread of this machine. The client only gets its address.
func startFarm(t *testing.T) *client.Client {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := toolchaintest.ShareCaches(dir); err != nil {
		t.Fatal(err)
	}
	f, err := farm.StartLocal(t.Context(), farm.LocalConfig{Records: filepath.Join(dir, "tilth.db"), CacheDir: dir,
		Target: machine.WithToolchain(tc.For(machine)), Toolchain: tc, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	return f.Client
}

// patient is the patience for agents to join.
var patient = client.Patience{Waits: true, Most: time.Minute}

// TestProgramHasAFarmTuneItsModel submits a model to a tracker and receives records. Cancellation ends the job.
func TestProgramHasAFarmTuneItsModel(t *testing.T) {
	c := startFarm(t)
	heard := 0
	r, err := jobclient.Tune(t.Context(), c, []jobclient.Source{{Name: "doubles", Model: doubles(), Weight: 3}}, jobclient.TuneOptions{
		Options: jobclient.Options{Owner: "me", Trials: 3}, Patience: patient, Progress: func(tally *progress.Tally) { heard = tally.Trials() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.State != "done" || r.Trials != 3 || heard != 3 || r.Tasks[0].Weight != 3 || r.Tracker == "" {
		t.Errorf("heard of %d trials; the result is %+v", heard, r.Summary)
	}
	if len(r.Best) != 1 || r.Best[0].GetMeasurement() == nil {
		t.Errorf("best records: %v", r.Best)
	}
	j, err := c.Job(t.Context(), r.Job)
	if err != nil || j.GetSpec().GetName() != "doubles" || j.GetSpec().GetOwner() != "me" {
		t.Errorf("the job is %v, %v", j.GetSpec(), err)
	}
	givesUp(t, c)
}

// givesUp checks that a cancelled call returns the measurements so far.
func givesUp(t *testing.T, c *client.Client) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	// The space is too large for the job to end before it is cancelled.
	product := modeltest.New().Input("x", 64, 64).Constant("w", 64, 64).Node("y = MatMul x w").Output("y")
	r, err := jobclient.Tune(ctx, c, []jobclient.Source{{Name: "product", Model: product}}, jobclient.TuneOptions{
		Options: jobclient.Options{Trials: 1 << 20, NoTransfer: true}, Patience: patient, Progress: func(tally *progress.Tally) {
			if tally.Trials() > 0 {
				stop(enough)
			}
		},
	})
	if !errors.Is(err, enough) || r == nil || r.State != "cancelled" || r.Trials == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestInvalidTuneRequestsFailEarly checks for errors before the tracker is called.
func TestInvalidTuneRequestsFailEarly(t *testing.T) {
	c, err := client.Dial("unix:/nowhere", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for want, sources := range map[string][]jobclient.Source{
		"no model to tune": nil,
		"its weight is -1": {{Name: "doubles", Model: doubles(), Weight: -1}},
		"doubles: ":        {{Name: "doubles", Model: doubles(), Shapes: map[string][]int64{"x": {1, 2, 3}}}},
	} {
		_, err := jobclient.Tune(t.Context(), c, sources, jobclient.TuneOptions{Options: jobclient.Options{Trials: 1}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
