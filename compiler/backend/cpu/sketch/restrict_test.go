package sketch

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

func TestPartOfASpaceProposesOnlyItsValues(t *testing.T) {
	whole := New(Conv(t, 14, 64), Target(t, "x86-64-v3"), schedule.Default)
	values := map[string][]int64{"alg": {F4x4.Number}, "wt": {2, 6}, "wv": {1, 2}, "tv": {2}}
	part, err := whole.Restrict(values)
	if err != nil {
		t.Fatal(err)
	}
	check := func(p searchspace.Point) {
		t.Helper()
		for k, knob := range part.Knobs {
			if wanted, named := values[knob.Name]; named && !slices.Contains(wanted, knob.Values[p[k]]) {
				t.Errorf("%s has %s=%d", part.Format(p), knob.Name, knob.Values[p[k]])
			}
		}
		q, ok := whole.Parse(part.Format(p))
		if !ok || whole.Format(q) != part.Format(p) || whole.Cost(q) != part.Cost(p) {
			t.Errorf("%s is %s in the whole", part.Format(p), whole.Format(q))
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	a, b := part.Default(), part.Default()
	for range 200 {
		if p, ok := part.Random(rng); ok {
			check(p)
			a = p
		}
		if p, ok := part.Mutate(rng, a); ok {
			check(p)
			b = p
		}
		if p, ok := part.Crossover(rng, a, b); ok {
			check(p)
		}
	}
	for _, p := range slices.Concat(part.Seeds(), part.Neighbours(a)) {
		check(p)
	}
}

func TestPartOfASpaceWithOneAlgorithmMutates(t *testing.T) {
	whole := New(Conv(t, 14, 64), Target(t, "x86-64-v3"), schedule.Default)
	for _, alg := range []searchspace.Algorithm{searchspace.Direct, F4x4} {
		part := whole.Of(alg)
		rng := rand.New(rand.NewPCG(2, 2))
		p, ok := part.Random(rng)
		for range 100 {
			if q, changed := part.Mutate(rng, p); ok && changed && part.Algorithm(q) != alg {
				t.Fatalf("%s has another algorithm", part.Format(q))
			}
		}
	}
}

func TestRestrictNamesWhatTheSpaceDoesNotHave(t *testing.T) {
	whole := New(Conv(t, 14, 64), Target(t, "x86-64-v3"), schedule.Default)
	for _, c := range []struct {
		values  map[string][]int64
		message string
	}{
		{map[string][]int64{"zz": {1}, "yy": {1}}, "no knob yy"},
		{map[string][]int64{"tv": {5}}, "knob tv has no value 5"},
		{map[string][]int64{"tv": {}}, "knob tv is left without a value"},
	} {
		if _, err := whole.Restrict(c.values); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%v: %v, want %q", c.values, err, c.message)
		}
	}
}
