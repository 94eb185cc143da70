package rewrite_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// quantisedBlock returns a convolution of quantised values by quantised weights, with a bias; its result is c.
func quantisedBlock() modeltest.Model {
	weights := array.New(array.Int8, 8, 8, 3, 3)
	for i := range weights.Len() {
		weights.SetInt(i, (i*i*7+3*i)%255-127)
	}
	zero := array.New(array.Uint8)
	zero.SetInt(0, 128)
	return modeltest.New().Input("x", 1, 8, 6, 6).Known("one", modeltest.Wave(0.02, 0, 1)).Known("zx", zero).Known("iw", weights).
		Known("sw", modeltest.Wave(0.003, 0.001, 8)).Known("sy", modeltest.Wave(0.05, 0, 1)).Known("six", modeltest.Wave(6, 0, 1)).Known("nil", modeltest.Wave(0, 0, 1)).
		Constant("b", 8).Node("q = QuantizeLinear x one zx").Node("qx = DequantizeLinear q one zx").
		Node("w = DequantizeLinear iw sw", modeltest.Int("axis", 0)).Node("c = Conv qx w b", modeltest.Same3x3)
}

// TestQuantisationTakesInWhatIsBeforeIt: a scale joins the factors of a sum, and bounds join those of the integers.
func TestQuantisationTakesInWhatIsBeforeIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		model modeltest.Model
		// products are the multiplications of floats that are left of a result.
		products int
	}{
		{"alone", quantisedBlock().Node("r = Identity c"), 1},
		{"Relu", quantisedBlock().Node("r = Relu c"), 1},
		{"Clip", quantisedBlock().Known("low", scalarOf(0)).Known("high", scalarOf(6)).Node("r = Clip c low high"), 1},
		{"a residual", quantisedBlock().Node("qc = QuantizeLinear c sy zx").Node("dc = DequantizeLinear qc sy zx").Node("a = Add dc qx").Node("r = Relu a"), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.model.Node("y = QuantizeLinear r sy zx").Output("y")
			p := modeltest.Import(t, m)
			modeltest.Check(t, p)
			text := p.Tasks[p.Calls[len(p.Calls)-1].Task].Workload.Text()
			line := text[strings.LastIndex(text, "(cast f32 (sub"):]
			if strings.Contains(text, "(div ") || strings.Count(text, "(mul (")-1 > c.products+1 {
				t.Errorf("more than %d multiplications, or divisions, in\n%s%s", c.products, text, line)
			}
			floats := modeltest.Run(t, modeltest.Import(t, c.model.Output("r")))["r"]
			got := modeltest.Run(t, p)["y"]
			for i := range got.Len() {
				want := min(max(math.RoundToEven(floats.Float(i)/float64(float32(0.05)))+128, 0), 255)
				if math.Abs(got.Float(i)-want) > 1 {
					t.Fatalf("element %d is %g, want %g", i, got.Float(i), want)
				}
			}
		})
	}
}

func scalarOf(v float64) *array.Array {
	a := array.New(array.Float32)
	a.SetFloat(0, v)
	return a
}

// TestPartsAreQuantisedBeforeTheyAreLinedUp: the integers of two scales become those of a third without floats in
// memory, and a part of floats is stored as the integers that its kernel makes of it.
func TestPartsAreQuantisedBeforeTheyAreLinedUp(t *testing.T) {
	m := modeltest.New().Input("x", 1, 6, 8).Input("y", 1, 6, 8).Known("zero", array.New(array.Int8)).
		Known("sx", modeltest.Wave(0.02, 0, 1)).Known("sy", modeltest.Wave(0.03, 0, 1)).Known("s", modeltest.Wave(0.05, 0, 1)).
		Node("qx = QuantizeLinear x sx zero").Node("dx = DequantizeLinear qx sx zero").
		Node("qy = QuantizeLinear y sy zero").Node("dy = DequantizeLinear qy sy zero").Node("t = Tanh dy").
		Node("all = Concat dx t y dy", modeltest.Int("axis", 1))
	p := modeltest.Import(t, m.Node("r = QuantizeLinear all s zero").Output("r"))
	modeltest.Check(t, p)
	for _, v := range p.Values {
		if v.DType == array.Float32 && v.Name != "x" && v.Name != "y" && len(v.Shape) == 3 {
			t.Errorf("%s lies in memory as floats", v.Name)
		}
	}
	floats, got := modeltest.Run(t, modeltest.Import(t, m.Output("all")))["all"], modeltest.Run(t, p)["r"]
	for i := range got.Len() {
		want := min(max(math.RoundToEven(floats.Float(i)/float64(float32(0.05))), -128), 127)
		if math.Abs(got.Float(i)-want) > 1 {
			t.Fatalf("element %d is %g, want %g", i, got.Float(i), want)
		}
	}
}
