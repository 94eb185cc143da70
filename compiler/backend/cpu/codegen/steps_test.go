package codegen

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestStepsOfLargeTilesAreSeparated uses four unrolled steps with three places between them. A tile of few
// accumulators has spare registers, and prefetches separate steps themselves.
func TestStepsOfLargeTilesAreSeparated(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	s := sketch.New(kerneltest.Product(t, 96, 64, 96), machine, schedule.Strict)
	for origin, want := range map[string]int{
		"tv=2 tw=6 hb=1 cb=1 ku=4 pf=0":   3,
		"tv=2 tw=6 hb=1 cb=1 ku=1 pf=0":   0,
		"tv=2 tw=2 hb=1 cb=1 ku=4 pf=0":   0,
		"tv=2 tw=6 hb=1 cb=1 ku=4 pf=512": 0,
	} {
		source := moduleAt(t, s, origin)
		if got := strings.Count(source, "__asm__ volatile"); got != want {
			t.Errorf("%s: steps are kept apart in %d places, want %d\n%s", origin, got, want, source)
		}
	}
}
