package modelzoo

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// imported returns a built-in model as a program.
func imported(t *testing.T, name string, o Options) *program.Program {
	t.Helper()
	m, err := Build(name, o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWeightsInBlocksAreNearlyThoseOfFloats: products have packed weights, and scores are as far from those of floats
// as codes of so many bits are.
func TestWeightsInBlocksAreNearlyThoseOfFloats(t *testing.T) {
	tokens := map[string]*array.Array{"input_ids": array.FromInt64([]int64{3, 141, 59, 26, 5}, 1, 5)}
	floats, err := evaluate.Program(imported(t, "llama-tiny", Options{Seq: 5}), tokens)
	if err != nil {
		t.Fatal(err)
	}
	want := floats["logits"]
	for bits, smallest := range map[int64]float64{8: 0.02, 4: 0.4} {
		p := imported(t, "llama-tiny", Options{Seq: 5, Bits: bits})
		packed := 0
		for _, task := range p.Tasks {
			for _, c := range task.Workload.Constants {
				if c.DType == array.Uint8 {
					packed++
				}
			}
		}
		if packed < 6 {
			t.Errorf("%d bits: %d tasks have packed weights, want those of all dense layers", bits, packed)
		}
		outs, err := evaluate.Program(p, tokens)
		if err != nil {
			t.Fatal(err)
		}
		got, errors, squares := outs["logits"], 0.0, 0.0
		for i := range want.Len() {
			errors, squares = errors+math.Pow(got.Float(i)-want.Float(i), 2), squares+math.Pow(want.Float(i), 2)
		}
		if e := math.Sqrt(errors / squares); e == 0 || e > smallest {
			t.Errorf("%d bits: the error is %.3f of what scores are, want less than %.3f", bits, e, smallest)
		}
	}
}

func TestOnlyModelsThatReadTextHaveWeightsInBlocks(t *testing.T) {
	for _, c := range []struct {
		name string
		bits int64
		want string
	}{{"resnet-18", 4, "reads no text"}, {"bert-tiny", 3, "want 4 or 8"}, {"gpt-small", -4, "want 4 or 8"}} {
		if err := Check(c.name, Options{Bits: c.bits}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %d bits: %v, want %q", c.name, c.bits, err, c.want)
		}
	}
}
