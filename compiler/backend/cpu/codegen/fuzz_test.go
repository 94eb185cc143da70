package codegen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

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
	kerneltest.AddCases(f, 40, drawCase)
	avx512 := modes[0].description(f)
	kerneltest.AddCases(f, 10, func(t *rapid.T) kerneltest.Case { return drawWinograd(t, avx512) })
	kerneltest.AddCases(f, 20, kerneltest.DrawTiled)
	kerneltest.FuzzReplay(f, func(w *expr.Workload, s *schedule.Schedule) {
		_, _ = Module(w, []backend.Kernel{{ID: schedule.Digest(s.Trace()), Schedule: s}}, avx512)
	})
}
