package gpu

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// TestRandomModelsAreRead imports models of different seeds and storage types and checks their shapes. The same seed
// gives the same model.
func TestRandomModelsAreRead(t *testing.T) {
	for seed := range uint64(20) {
		encoded := randomModel(seed).Encode()
		if string(encoded) != string(randomModel(seed).Encode()) {
			t.Fatalf("seed %d gives two models", seed)
		}
		for _, storage := range []array.DType{array.Invalid, array.BFloat16} {
			m, err := onnx.Read(encoded)
			if err != nil {
				t.Fatal(err)
			}
			p, err := frontend.Import(m, frontend.Options{Storage: array.Storage{Type: storage}})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if n := len(p.Tasks); n < 10*perKind/2 {
				t.Errorf("seed %d gives %d tasks only", seed, n)
			}
		}
	}
}
