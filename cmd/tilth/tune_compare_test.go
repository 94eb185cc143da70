package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestModelsAreComparedAfterTuning compares a model without records: both packages have the default schedules.
func TestModelsAreComparedAfterTuning(t *testing.T) {
	model := filepath.Join(t.TempDir(), "mlp.onnx")
	if status := run([]string{"model", "mlp", "-o", model}, nil, io.Discard, t.Output()); status != 0 {
		t.Fatalf("writing the model ends with %d", status)
	}
	machine, tc, err := localTarget(t.Context(), "native", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := hostlock.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	none := func(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
		return nil, nil
	}
	with := modelComparison{target: machine, toolchain: tc, lookup: none, lock: lock, objects: toolchaintest.Cache(t, "objects"), scratch: t.TempDir()}
	command := &tuneCommand{app: &app{stderr: t.Output()}}
	command.numerics.level = schedule.Default
	measured, err := command.compareModels(t.Context(), []string{model}, with, time.Minute)
	if err != nil || len(measured) != 1 {
		t.Fatalf("measured %v: %v", measured, err)
	}
	if m := measured[0]; m.Model != "mlp" || m.UntunedSeconds <= 0 || m.TunedSeconds <= 0 || m.Ratio <= 0 || m.Verdict == stats.TooFewRounds {
		t.Errorf("measured %+v", m)
	}
	if measured, err := command.compareModels(t.Context(), []string{model}, with, minCompareTime-1); err != nil || measured != nil {
		t.Errorf("after a short job: %v, %v", measured, err)
	}
	lost := errors.New("the records are gone")
	with.lookup = func(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
		return nil, lost
	}
	if measured, err := command.compareModels(t.Context(), []string{model}, with, time.Minute); !errors.Is(err, lost) {
		t.Errorf("without records: %v, %v", measured, err)
	}
}
