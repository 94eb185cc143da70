package codegen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
)

// TestTilesPrefetchTheStreamedResidual checks that tiles prefetch once per line if a residual and the results exceed
// the second-level cache.
func TestTilesPrefetchTheStreamedResidual(t *testing.T) {
	const text = `tilth-workload 1
input t0 f32[ROWS,64]
input t1 f32[ROWS,256]
constant t2 f32[64,256]
sum t3 f32[ROWS,256] over 64 = (mul [t0 i0 r0] [t2 r0 i1])
map t4 f32[ROWS,256] = (add [t3 i0 i1] [t1 i0 i1])
output t4
`
	machine, err := target.Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	machine.CPU.L2Bytes = 1 << 20
	for rows, want := range map[int]int{3072: 12, 96: 0} { // 6 rows of a line each, read and written
		w, err := expr.Parse(strings.ReplaceAll(text, "ROWS", fmt.Sprint(rows)))
		if err != nil {
			t.Fatal(err)
		}
		s := sketch.New(w, machine, schedule.Strict)
		source := moduleAt(t, s, "tv=2 tw=6 hb=1 cb=1 ku=1")
		if got := strings.Count(source, "__builtin_prefetch"); got != want {
			t.Errorf("%d rows: %d fetches, not %d", rows, got, want)
		}
	}
}

// moduleAt returns the source of a module with the kernel of one point.
func moduleAt(t *testing.T, s *searchspace.Space, origin string) string {
	t.Helper()
	p, ok := s.Parse(origin)
	if !ok {
		t.Fatalf("%s is not legal", origin)
	}
	applied, err := s.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	source, err := Module(s.Workload, []backend.Kernel{{ID: "k", Schedule: applied}}, s.Target)
	if err != nil {
		t.Fatal(err)
	}
	return source
}
