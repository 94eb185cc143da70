package kerneltest

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// Families returns generators of workloads of all kinds by name. Those of "narrow" draw from the given tasks of
// float32 models whose factors have 16 bits.
func Families(narrow []*expr.Workload) map[string]func(*rapid.T) *expr.Workload {
	return map[string]func(*rapid.T) *expr.Workload{
		"any": DrawWorkload, "product": DrawProduct, "convolution": DrawConv, "integers": DrawIntegerProduct, "narrow products": DrawNarrowProduct, "rows": DrawRows,
		"matrices": DrawMatrices, "attention": DrawAttention, "warpgroups": DrawWarpgroups, "sums": DrawSums, "windows": DrawWindows,
		"groups": DrawGroups, "totals": DrawTotals, "blocks": DrawBlockProduct, "narrow": func(t *rapid.T) *expr.Workload { return rapid.SampledFrom(narrow).Draw(t, "task") },
	}
}
