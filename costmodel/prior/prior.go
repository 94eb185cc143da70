// Package prior has the cost models that come with the program. A search of a machine that nothing is known of begins
// with what was measured on others of its architecture.
package prior

import (
	_ "embed" // for the models
	"fmt"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
)

// x86 was trained on 64 candidates of each of 223 tasks of the built-in models with AVX-512, recorded twice, and of 74
// with AVX2 (avx2.json is the native target without AVX-512), all measured on one thread of a Cascade Lake:
//
//	tilth bench record all --sample 64 --every 2 --most-gflop 2 -o survey
//	tilth bench record all --sample 64 --every 2 --most-gflop 2 -o again
//	tilth bench record all --sample 64 --every 6 --most-gflop 2 -o survey2 --target avx2.json
//	tilth bench model survey again survey2 -o costmodel/prior/x86.txt
//
//go:embed x86.txt
var x86 string

var readX86 = sync.OnceValues(func() (*costmodel.Model, error) {
	m, err := costmodel.Read(strings.NewReader(x86))
	if err != nil {
		return nil, fmt.Errorf("costmodel/prior/x86.txt: %w", err)
	}
	return m, nil
})

// For is the model for a target; nil when there is none of its architecture.
func For(t *target.Target) (*costmodel.Model, error) {
	if t.CPU.Arch != target.X86 {
		return nil, nil
	}
	return readX86()
}
