package bestschedule

import (
	"context"
	"log/slog"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestMeasuredRecordsReplaceOversizedOnes uses a product whose best record is Strassen's algorithm with more sums than
// fit. Its best direct record must be preferred to an untuned schedule of equal predicted speed.
func TestMeasuredRecordsReplaceOversizedOnes(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	p := products(t, 2048, 50)
	w := p.Tasks[0].Workload
	space, err := registry.Space(w, machine, schedule.Default)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := untuned(p.Tasks[0], space)
	if err != nil {
		t.Fatal(err)
	}
	measured := map[schedule.Numerics]*tilthv1.Record{}
	for _, a := range lists {
		if a.schedule.Numerics() == schedule.Strict || a.added.sums > 0 {
			measured[a.schedule.Numerics()] = record(w.Digest(), a.choice.Trace)
		}
	}
	if len(measured) != 2 {
		t.Fatalf("%d kinds of schedules", len(measured))
	}
	lookup := func(with bool) Lookup {
		return func(_ context.Context, _ string, level schedule.Numerics, _ ...string) ([]*tilthv1.Record, error) {
			if level == schedule.Strict && !with {
				return nil, nil
			}
			return []*tilthv1.Record{measured[level]}, nil
		}
	}
	for with, want := range map[bool]string{true: FromRecord, false: FromDefault} {
		choices, err := Choose(t.Context(), p, machine, schedule.Default, Sources{Lookup: lookup(with)}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Replay(w, choices[0].Trace)
		if err != nil {
			t.Fatal(err)
		}
		if sums, _ := s.AddedBytes(); choices[0].Origin != want || with != (s.Numerics() == schedule.Strict) || sums > 0 {
			t.Errorf("with a record of direct sums %v: %s with\n%s", with, choices[0].Origin, choices[0].Trace)
		}
	}
}
