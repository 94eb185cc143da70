package codegen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// hostileLimit is far longer than any trace may take, even under a race detector on a loaded machine.
const hostileLimit = 30 * time.Second

// FuzzReplay feeds arbitrary workloads and traces to the whole compiler. Each is refused or compiled to text, in
// bounded time and memory, and a replayed trace round-trips.
func FuzzReplay(f *testing.F) {
	files, err := filepath.Glob("testdata/schedules/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		workload, trace, _ := strings.Cut(string(data), "tilth-trace")
		trace, _, _ = strings.Cut(trace, "workers ")
		f.Add(workload, "tilth-trace"+trace)
	}
	cases := rapid.Custom(drawCase)
	for seed := range 40 {
		c := cases.Example(seed)
		f.Add(c.Workload.Text(), string(c.Schedule.Trace()))
	}
	avx512 := modes[0].description(f)
	convs := rapid.Custom(func(t *rapid.T) kerneltest.Case { return drawWinograd(t, avx512) })
	for seed := range 10 {
		c := convs.Example(seed)
		f.Add(c.Workload.Text(), string(c.Schedule.Trace()))
	}
	walks := rapid.Custom(kerneltest.DrawTiled)
	for seed := range 20 {
		c := walks.Example(seed)
		f.Add(c.Workload.Text(), string(c.Schedule.Trace()))
	}
	f.Fuzz(func(t *testing.T, text, trace string) {
		begin := time.Now()
		compileHostile(t, text, trace, func(w *expr.Workload, s *schedule.Schedule) {
			_, _ = Module(w, []backend.Kernel{{ID: schedule.Digest(s.Trace()), Schedule: s}}, avx512)
		})
		if took := time.Since(begin); took > hostileLimit {
			t.Errorf("took %v", took)
		}
	})
}

func compileHostile(t testing.TB, text, trace string, compile func(*expr.Workload, *schedule.Schedule)) {
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
}
