package bestschedule

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/transfer"
)

func imported(t *testing.T) (*program.Program, *target.Target) {
	t.Helper()
	m, err := modelzoo.Build("mlp", modelzoo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	return p, machine
}

func record(workload string, trace []byte) *tilthv1.Record {
	return &tilthv1.Record{WorkloadDigest: workload, Measurement: &tilthv1.Measurement{
		Candidate: &tilthv1.Candidate{Trace: trace}, LatencySeconds: 0.5,
	}}
}

func TestBestRecordIsChosenAndTheDefaultWhereNoneReplays(t *testing.T) {
	p, machine := imported(t)
	first, second := p.Tasks[0].Workload, p.Tasks[1].Workload
	s, err := registry.Default(first, machine, schedule.Strict)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(_ context.Context, asked string, _ schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error) {
		if asked != machine.Fingerprint() || len(workloads) != len(p.Tasks) {
			t.Errorf("asked for %d workloads of %s", len(workloads), asked)
		}
		return []*tilthv1.Record{record(first.Digest(), s.Trace()), record(second.Digest(), []byte("tilth-trace 9\n"))}, nil
	}
	choices, err := Choose(t.Context(), p, machine, schedule.Strict, Sources{Lookup: lookup}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if c := choices[0]; c.Origin != FromRecord || c.LatencySeconds != 0.5 {
		t.Errorf("a task with a record has %s, %v s", c.Origin, c.LatencySeconds)
	}
	for i, c := range choices[1:] {
		if c.Origin != FromDefault || c.LatencySeconds != 0 || len(c.Trace) == 0 {
			t.Errorf("task %d, without a record that replays, has %s, %v s", i+1, c.Origin, c.LatencySeconds)
		}
	}
	if n := Count(choices, FromRecord); n != 1 {
		t.Errorf("%d are tuned, want 1", n)
	}
}

func TestLookupThatFailsIsAnError(t *testing.T) {
	p, machine := imported(t)
	broken := errors.New("no tracker")
	lookup := func(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
		return nil, broken
	}
	if _, err := Choose(t.Context(), p, machine, schedule.Strict, Sources{Lookup: lookup}, slog.New(slog.DiscardHandler)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestRecordThatNumericsForbidIsNotUsed checks that strict numerics use direct sums whatever the look-up returns.
func TestRecordThatNumericsForbidIsNotUsed(t *testing.T) {
	w, err := expr.Parse(`tilth-workload 1
input t0 f32[10,10,8]
constant t1 f32[3,3,8,8]
sum t2 f32[8,8,8] over 3,3,8 = (mul [t0 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
output t2
`)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	if _, err := s.Winograd(0, 4, 4); err != nil {
		t.Fatal(err)
	}
	_, machine := imported(t)
	p := &program.Program{Tasks: []program.Task{{Name: "conv", Workload: w}}}
	lookup := func(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
		return []*tilthv1.Record{record(w.Digest(), s.Trace())}, nil
	}
	for level, want := range map[schedule.Numerics]string{schedule.Strict: FromDefault, schedule.Default: FromRecord} {
		choices, err := Choose(t.Context(), p, machine, level, Sources{Lookup: lookup}, slog.New(slog.DiscardHandler))
		if err != nil || choices[0].Origin != want {
			t.Fatalf("%v: %v, want %s, %v", level, choices, want, err)
		}
		if used, err := schedule.Replay(w, choices[0].Trace); err != nil || used.Numerics() > level {
			t.Errorf("%v uses %v\n%s", level, err, choices[0].Trace)
		}
	}
}

// TestTaskWithoutARecordGetsTheModelsGuess uses a model learnt from other workloads, on a simulated machine on which
// the costliest schedules are the fastest.
func TestTaskWithoutARecordGetsTheModelsGuess(t *testing.T) {
	p, machine := imported(t)
	var tasks []*transfer.Task
	for n := range int64(16) {
		w := kerneltest.Product(t, 1, 64+16*n, 128+32*n)
		s := spaceOf(t, w, machine, schedule.Strict)
		task := &transfer.Task{Workload: w, Target: machine}
		for _, point := range s.Seeds() {
			task.Trials = append(task.Trials, transfer.Trial{Origin: s.Format(point), LatencySeconds: math.Pow(s.Cost(point)/s.Cost(s.Default()), -4)})
		}
		tasks = append(tasks, task)
	}
	calls := 0
	learn := func(_ context.Context, asked *target.Target) (*transfer.History, error) {
		calls++
		return transfer.NewHistory(asked, tasks), nil
	}
	choices, err := Choose(t.Context(), p, machine, schedule.Strict, Sources{Learn: learn}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	guessed := 0
	for i, c := range choices {
		if c.Origin == FromTransfer {
			guessed++
		}
		if _, err := schedule.Replay(p.Tasks[i].Workload, c.Trace); err != nil {
			t.Errorf("task %d: %v", i, err)
		}
	}
	if guessed == 0 || guessed != Count(choices, FromTransfer) || calls != 1 {
		t.Errorf("%d of %d schedules are guesses, after asking %d times", guessed, len(choices), calls)
	}
}

// TestRecordsFromElsewhereAreConfirmed checks that refused records are not used, and that confirmed ones get their
// local latency.
func TestRecordsFromElsewhereAreConfirmed(t *testing.T) {
	p, machine := imported(t)
	var list []*tilthv1.Record
	for _, task := range p.Tasks[:3] {
		s, err := registry.Default(task.Workload, machine, schedule.Strict)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, record(task.Workload.Digest(), s.Trace()))
	}
	lookup := func(context.Context, string, schedule.Numerics, ...string) ([]*tilthv1.Record, error) {
		return list, nil
	}
	confirm := func(_ context.Context, r *tilthv1.Record, s, standard *schedule.Schedule) (float64, string, error) {
		if s.Workload.Digest() != r.GetWorkloadDigest() || standard.Workload.Digest() != r.GetWorkloadDigest() {
			t.Error("asked about another workload")
		}
		switch r {
		case list[0]:
			return 0.25, "", nil
		case list[1]:
			return 0, "wrong_result", nil
		}
		return 0, "", nil // measured here
	}
	sources := Sources{Lookup: lookup, Confirm: confirm}
	choices, err := Choose(t.Context(), p, machine, schedule.Strict, sources, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []struct {
		origin  string
		seconds float64
	}{{FromRecord, 0.25}, {FromDefault, 0}, {FromRecord, 0.5}, {FromDefault, 0}} {
		if c := choices[k]; c.Origin != want.origin || c.LatencySeconds != want.seconds {
			t.Errorf("task %d has %s, %v s; want %s, %v s", k, c.Origin, c.LatencySeconds, want.origin, want.seconds)
		}
	}
	broken := errors.New("no compiler")
	sources.Confirm = func(context.Context, *tilthv1.Record, *schedule.Schedule, *schedule.Schedule) (float64, string, error) {
		return 0, "", broken
	}
	if _, err := Choose(t.Context(), p, machine, schedule.Strict, sources, slog.New(slog.DiscardHandler)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// spaceOf returns the candidate schedules of a workload on a target.
func spaceOf(t testing.TB, w *expr.Workload, on *target.Target, numerics schedule.Numerics) *searchspace.Space {
	t.Helper()
	s, err := registry.Space(w, on, numerics)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
