package kerneltest

import (
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"pgregory.net/rapid"
)

// HostileLimit is far longer than any workload and trace may take, even with a race detector on a loaded machine.
const HostileLimit = 30 * time.Second

// AddCases adds the first n cases of a distribution to a fuzz test's corpus.
func AddCases(f *testing.F, n int, draw func(*rapid.T) Case) {
	cases := rapid.Custom(draw)
	for seed := range n {
		c := cases.Example(seed)
		f.Add(c.Workload.Text(), string(c.Schedule.Trace()))
	}
}

// FuzzReplay feeds arbitrary workloads and traces to compile. Each must be refused, or replay from its own trace and
// compile, within HostileLimit.
func FuzzReplay(f *testing.F, compile func(*expr.Workload, *schedule.Schedule)) {
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
		again, err := schedule.Replay(w, s.Trace())
		if err != nil || string(again.Trace()) != string(s.Trace()) {
			t.Errorf("the trace does not replay: %v\n%s", err, s.Trace())
		}
		compile(w, s)
		if took := time.Since(begin); took > HostileLimit {
			t.Errorf("took %v", took)
		}
	})
}
