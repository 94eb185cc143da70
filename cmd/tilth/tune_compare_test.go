package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// comparing returns a command, its comparison with an empty records file, and the path of a model.
func comparing(t *testing.T) (*tuneCommand, modelComparison, string) {
	t.Helper()
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
	source, err := recordsource.OpenFile(filepath.Join(t.TempDir(), "records.db"), true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	command := &tuneCommand{app: &app{stderr: t.Output()}}
	command.numerics.level = schedule.Default
	with := modelComparison{target: machine, toolchain: tc, records: source, lock: lock, objects: toolchaintest.Cache(t, "objects"), scratch: t.TempDir(),
		prefer: func(context.Context, []*tilthv1.Record) error { return nil }}
	return command, with, model
}

// unreadable is a source of records whose best ones cannot be read.
type unreadable struct {
	recordsource.Source
	err error
}

func (u unreadable) Best(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
	return nil, u.err
}

// TestModelsAreComparedAfterTuning compares a model without records: both packages have the default schedules.
func TestModelsAreComparedAfterTuning(t *testing.T) {
	command, with, model := comparing(t)
	measured, err := command.compareModels(t.Context(), []string{model}, with, time.Minute)
	if err != nil || len(measured) != 1 {
		t.Fatalf("measured %v: %v", measured, err)
	}
	if m := measured[0]; m.Model != "mlp" || m.UntunedSeconds <= 0 || m.TunedSeconds <= 0 || m.Ratio <= 0 || m.Verdict == stats.TooFewRounds {
		t.Errorf("measured %+v", m)
	}
	for _, task := range measured[0].Tasks {
		if task.UntunedSeconds <= 0 || task.TunedSeconds <= 0 || !task.KeepsDefault {
			t.Errorf("measured %+v", task)
		}
	}
	if measured, err := command.compareModels(t.Context(), []string{model}, with, minCompareTime-1); err != nil || measured != nil {
		t.Errorf("after a short job: %v, %v", measured, err)
	}
	lost := errors.New("the records are gone")
	with.records = unreadable{with.records, lost}
	if measured, err := command.compareModels(t.Context(), []string{model}, with, time.Minute); !errors.Is(err, lost) {
		t.Errorf("without records: %v, %v", measured, err)
	}
}

// TestTaskKeepsItsDefaultScheduleIfTheTunedOneIsSlowerInTheModel gives the plain loops of a product a record that is
// faster than that of the default schedule.
func TestTaskKeepsItsDefaultScheduleIfTheTunedOneIsSlowerInTheModel(t *testing.T) {
	command, with, model := comparing(t)
	var tasks []program.Task
	var standard []byte
	err := command.objective.model.loadAll([]string{model}, array.Storage{}, func(_ string, p *program.Program) error {
		choices, err := bestschedule.Choose(t.Context(), p, with.target, schedule.Default, bestschedule.Sources{}, slog.New(slog.DiscardHandler))
		if err == nil {
			tasks, standard = p.Tasks, choices[0].Trace
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w := tasks[0].Workload
	plain, err := schedule.Replay(w, []byte("tilth-trace 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	measured := func(trace []byte, seconds float64) *tilthv1.Record {
		return &tilthv1.Record{WorkloadDigest: w.Digest(), Workload: []byte(w.Text()), Target: with.target.Fingerprint(), Measurement: &tilthv1.Measurement{
			Candidate: &tilthv1.Candidate{Digest: schedule.Digest(trace), Trace: trace}, Error: tilthv1.ErrorClass_ERROR_CLASS_NONE,
			SamplesSeconds: []float64{seconds}, LatencySeconds: seconds, At: timestamppb.Now(),
		}}
	}
	list := []*tilthv1.Record{measured(standard, 1e-3), measured(plain.Trace(), 0.9e-3)}
	if _, _, err := with.records.Import(t.Context(), storesync.Each(list)); err != nil {
		t.Fatal(err)
	}
	var preferred []*tilthv1.Record
	with.prefer = func(_ context.Context, list []*tilthv1.Record) error {
		preferred = list
		return nil
	}
	models, err := command.compareModels(t.Context(), []string{model}, with, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if task := models[0].Tasks[0]; !task.KeepsDefault || task.Paired.Verdict() != stats.Slower {
		t.Errorf("the task is %+v", task)
	}
	if len(preferred) != 1 {
		t.Fatalf("%d preferences", len(preferred))
	}
	m, tuned := preferred[0].GetMeasurement(), list[1].GetMeasurement()
	if m.GetCandidate().GetDigest() != schedule.Digest(standard) || m.GetLatencySeconds() != 1e-3 || m.GetRemeasured() == "" || !records.Supersedes(m, tuned) {
		t.Errorf("the default schedule is preferred by %v", m)
	}
}
