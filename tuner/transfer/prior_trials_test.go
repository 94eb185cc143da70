package transfer

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestOlderSpacesDoNotCountAsSearched is a regression test: a search with records of an older version considered tasks
// converged, although the default schedule and half of the knobs did not exist then.
func TestOlderSpacesDoNotCountAsSearched(t *testing.T) {
	w, m := kerneltest.Product(t, 64, 128, 96), machine(t, 1)
	s := spaceOf(t, w, m, schedule.Default)
	trial := func(p searchspace.Point, seconds float64) Trial {
		sch, err := s.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		return Trial{s.Format(p), schedule.Digest(sch.Trace()), seconds}
	}
	now, seed := trial(s.Default(), 2e-3), trial(s.Seeds()[0], 1e-3)
	fewerKnobs, otherValue, otherSchedule := seed, seed, now
	fewerKnobs.Origin = seed.Origin[:strings.LastIndex(seed.Origin, " ")]
	otherValue.Origin = strings.Replace(seed.Origin, " ku=", " ku=99", 1)
	otherSchedule.Digest = seed.Digest + "x"
	for name, c := range map[string]struct {
		trials []Trial
		want   []float64
	}{
		"all of today's":               {[]Trial{seed, now, seed}, []float64{1e-3, 2e-3, 1e-3}},
		"without the default":          {[]Trial{seed, seed}, nil},
		"with another default":         {[]Trial{seed, otherSchedule}, nil},
		"with fewer knobs":             {[]Trial{now, fewerKnobs}, []float64{2e-3}},
		"with values that are no more": {[]Trial{now, otherValue}, []float64{2e-3}},
	} {
		h := NewHistory(m, []*Task{{Workload: w, Target: m, Trials: c.trials}})
		if got := h.Latencies(s); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
