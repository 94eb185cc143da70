package models

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/aot/profile"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// maxKernels is the maximum number of kernels in a result.
const maxKernels = 12

// kernel sums up all calls of a task in a package.
type kernel struct {
	Task    string  `json:"task"`
	Calls   int     `json:"calls"`
	Seconds float64 `json:"seconds"` // over all calls
	Share   float64 `json:"share"`
	// Flop and LimitSeconds cover all calls, as in a profile.
	Flop         float64 `json:"flop"`
	LimitSeconds float64 `json:"limit_seconds"`
	BoundBy      string  `json:"bound_by"`
}

// busiest sums up the calls of each task and returns the n slowest tasks.
func busiest(calls []profile.Call, n int) []kernel {
	var list []kernel
	at := map[string]int{}
	for _, c := range calls {
		k, ok := at[c.Task]
		if !ok {
			k = len(list)
			at[c.Task] = k
			list = append(list, kernel{Task: c.Task, BoundBy: c.BoundBy})
		}
		sum := &list[k]
		sum.Calls++
		sum.Seconds += c.Seconds
		sum.Share += c.Share
		sum.Flop += c.Flop
		sum.LimitSeconds += c.LimitSeconds
	}
	slices.SortStableFunc(list, func(a, b kernel) int { return -cmp.Compare(a.Seconds, b.Seconds) })
	return slices.Clip(list[:min(n, len(list))])
}

// writeKernels writes the slowest kernels of a package as a Markdown table.
func (r result) writeKernels(out *strings.Builder, n int) {
	table := bench.NewTable(">share | >ms | >calls | >GFLOP/s | >of peak | >limit | bound by | kernel")
	for _, k := range r.Kernels[:min(n, len(r.Kernels))] {
		share := humanize.Missing
		if r.Peak.FlopsPerSecond > 0 {
			share = bench.Percent(k.Flop / k.Seconds / r.Peak.FlopsPerSecond)
		}
		table.Rowf("%.1f %% | %.3g | %d | %s | %s | %.3g | %s | %s", 100*k.Share, k.Seconds*1e3, k.Calls,
			humanize.GFLOPS(k.Flop, k.Seconds), share, k.LimitSeconds*1e3, k.BoundBy, k.Task)
	}
	table.Write(out, fmt.Sprintf("%s, %s, %s: %.4g ms, %.2f × ONNX Runtime", r.Model, r.Schedules, bench.Threads(r.Threads), r.Seconds*1e3, r.Ratio))
}
