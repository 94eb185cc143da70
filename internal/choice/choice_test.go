package choice

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/job"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func program(t *testing.T) (*graph.Program, *target.Target) {
	t.Helper()
	m, err := model.Build("mlp", model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := graph.Import(m, graph.Options{})
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

func TestTheBestRecordIsChosenAndTheDefaultWhereNoneReplays(t *testing.T) {
	p, machine := program(t)
	first, second := p.Tasks[0].Workload, p.Tasks[1].Workload
	s, err := job.Default(first, machine)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(_ context.Context, asked string, workloads ...string) ([]*tilthv1.Record, error) {
		if asked != machine.Fingerprint() || len(workloads) != len(p.Tasks) {
			t.Errorf("asked for %d workloads of %s", len(workloads), asked)
		}
		return []*tilthv1.Record{record(first.Digest(), s.Trace()), record(second.Digest(), []byte("tilth-trace 9\n"))}, nil
	}
	choices, err := Choose(t.Context(), p, machine, lookup, slog.New(slog.DiscardHandler))
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
	if n := Tuned(choices); n != 1 {
		t.Errorf("%d are tuned, want 1", n)
	}
}

func TestALookupThatFailsIsAnError(t *testing.T) {
	p, machine := program(t)
	broken := errors.New("no tracker")
	lookup := func(context.Context, string, ...string) ([]*tilthv1.Record, error) { return nil, broken }
	if _, err := Choose(t.Context(), p, machine, lookup, slog.New(slog.DiscardHandler)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
