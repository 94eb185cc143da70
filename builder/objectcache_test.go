package builder

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCandidatesBuiltBeforeAreNotBuiltAgain(t *testing.T) {
	c, w := newCompiler(t, ""), product(t)
	c.Parallel = 1
	var err error
	if c.ObjectCache, err = OpenObjectCache(filepath.Join(t.TempDir(), "kept")); err != nil {
		t.Fatal(err)
	}
	build := func(factors ...int64) *Built {
		t.Helper()
		b, err := c.Build(t.Context(), t.TempDir(), Batch{Workload: w, Target: native(t), Candidates: tiled(t, w, factors...)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, again, more := build(8, 4), build(4, 8), build(4, 2)
	if len(first.Objects) != 1 || len(again.Objects) != 1 || len(more.Objects) != 2 {
		t.Fatalf("%d, %d and %d objects, want 1, 1 and 2", len(first.Objects), len(again.Objects), len(more.Objects))
	}
	for _, kept := range []string{again.Objects[0], more.Objects[0]} {
		if !sameFile(t, kept, first.Objects[0]) {
			t.Errorf("%s was built again", kept)
		}
	}
	if verdicts := measure(t, more); len(verdicts) != 3 {
		t.Errorf("verdicts are %v, want those of the batch and of what was built with its first", verdicts)
	}
	for digest, o := range measure(t, again) {
		if o.Error != none {
			t.Errorf("%s: %v %s", digest, o.Error, o.Message)
		}
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}
