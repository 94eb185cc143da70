package cost

import (
	_ "embed" // for the model

	"github.com/tilth-dev/tilth/compiler/target"
)

// x86 was trained on 64 candidates of each of 223 tasks of the built-in models with AVX-512, recorded twice, and of
// 74 with AVX2 (avx2.json is the native target without AVX-512), all measured on one thread of a Cascade Lake:
//
//	go run ./lab record all --sample 64 --every 2 --most-gflop 2 -o survey
//	go run ./lab record all --sample 64 --every 2 --most-gflop 2 -o again
//	go run ./lab record all --sample 64 --every 6 --most-gflop 2 -o survey2 --target avx2.json
//	go run ./lab costmodel survey again survey2 -o compiler/backend/cpu/cost/x86.txt
//
// The features were those of set 3, whose columns have the same meaning today.
//
//go:embed x86.txt
var x86 string

// PriorModel returns a cost model for a target without measurements, in LightGBM's text format, or "" if
// its architecture lacks one.
func PriorModel(t *target.Target) string {
	if t.CPU.Arch != target.X86 {
		return ""
	}
	return x86
}
