package gpusim

import (
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// hostileLimit is far longer than any trace may take, even under a race detector on a loaded machine.
const hostileLimit = 30 * time.Second

// FuzzReplay feeds arbitrary workloads and traces to the compiler for GPUs. Each is refused or compiled to text in
// bounded time.
func FuzzReplay(f *testing.F) {
	on := played(f)
	cases := rapid.Custom(func(t *rapid.T) kerneltest.Case {
		if rapid.Bool().Draw(t, "changed") {
			return kerneltest.DrawTiled(t)
		}
		return persistentPoint(t, drawWalk(t).Merge(), on)
	})
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		c := cases.Example(seed)
		f.Add(c.Workload.Text(), string(c.Schedule.Trace()))
	}
	f.Fuzz(func(t *testing.T, text, trace string) {
		begin := time.Now()
		w, err := expr.Parse(text)
		if err != nil {
			return
		}
		s, err := schedule.Replay(w, []byte(trace))
		if err != nil {
			return
		}
		_, _ = newUnit(on).AddWithPacks("k", "k", s)
		if took := time.Since(begin); took > hostileLimit {
			t.Errorf("took %v", took)
		}
	})
}
