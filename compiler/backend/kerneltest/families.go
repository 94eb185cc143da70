package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// Families draw workloads of all kinds, by their names. Those of "narrow" are among the given ones: tasks of models in
// float32 whose factors have 16 bits.
func Families(narrow []*expr.Workload) map[string]func(*rapid.T) *expr.Workload {
	return map[string]func(*rapid.T) *expr.Workload{
		"any": DrawWorkload, "product": DrawProduct, "convolution": DrawConv, "integers": DrawIntegerProduct, "narrow products": DrawNarrowProduct, "rows": DrawRows,
		"matrices": DrawMatrices, "attention": DrawAttention, "warpgroups": DrawWarpgroups, "sums": DrawSums, "windows": DrawWindows,
		"groups": DrawGroups, "totals": DrawTotals, "blocks": DrawBlockProduct, "narrow": func(t *rapid.T) *expr.Workload { return rapid.SampledFrom(narrow).Draw(t, "task") },
	}
}
