package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

var signalWindowDefs = []Def{
	cosineWindow("HannWindow", 0.5, 0.5, 0),
	cosineWindow("HammingWindow", 25.0/46, 21.0/46, 0),
	cosineWindow("BlackmanWindow", 0.42, 0.5, 0.08),
	knownDef("MelWeightMatrix", 5, 5, evalMelWeights),
}

// cosineWindow is a - b*cos(2πk/n) + c*cos(4πk/n).
func cosineWindow(name string, a, b, c float64) Def {
	return knownDef(name, 1, 1, func(n *Node) (*array.Array, error) {
		size := n.KnownInts(0, "size")
		d := Get(outputType(n))
		if len(size) != 1 || size[0] < 0 || size[0] > maxSamples {
			return nil, fmt.Errorf("input 0 (size) %v is out of range", size)
		}
		period := float64(size[0])
		if n.Int("periodic", 1) == 0 {
			period = max(1, period-1)
		}
		out := n.Budget.array(d, size[0])
		for k := range size[0] {
			angle := 2 * math.Pi * float64(k) / period
			out.SetFloat(k, a-b*math.Cos(angle)+c*math.Cos(2*angle))
		}
		return out, nil
	})
}

// outputType returns the attribute output_datatype.
func outputType(n *Node) (array.DType, error) {
	code := n.Int("output_datatype", int64(onnx.DataType(array.Float32)))
	n.check()
	d := onnx.FromDataType(int32(code))
	if d == array.Invalid || d == array.Bool {
		return 0, fmt.Errorf("output_datatype %d is not supported", code)
	}
	return d, nil
}

// evalMelWeights returns a triangle for each mel bin, over the bins of a spectrum, with corners at equal distances
// in mel.
func evalMelWeights(n *Node) (*array.Array, error) {
	var v [5]float64
	for k := range v {
		list := Get(n.knownFloats(k, "scalar"))
		if len(list) != 1 {
			return nil, fmt.Errorf("input %d is not a scalar", k)
		}
		v[k] = list[0]
	}
	d := Get(outputType(n))
	mels, length, rate := int64(v[0]), v[1], v[2]
	if !(v[0] >= 1 && v[0] <= 1<<16 && length >= 1 && length <= 1<<24 && rate >= 1 && v[3] >= 0 && v[4] >= v[3]) {
		return nil, fmt.Errorf("%g mel bins from %g to %g Hz of a spectrum of %g at %g Hz are out of range", v[0], v[3], v[4], length, rate)
	}
	bins := int64(length)/2 + 1
	mel := func(hz float64) float64 { return 2595 * math.Log10(1+hz/700) }
	low, step := mel(v[3]), (mel(v[4])-mel(v[3]))/float64(mels+2)
	corner := func(k int64) int64 {
		hz := 700 * (math.Pow(10, (low+step*float64(k))/2595) - 1)
		return int64(math.Floor((length + 1) * hz / rate))
	}
	out := n.Budget.array(d, bins, mels)
	for m := range mels {
		left, centre, right := corner(m), corner(m+1), corner(m+2)
		set := func(bin int64, w float64) {
			if bin >= 0 && bin < bins {
				out.SetFloat(bin*mels+m, w)
			}
		}
		if left == centre {
			set(centre, 1)
		}
		for b := left; b <= min(centre, bins) && left < centre; b++ {
			set(b, float64(b-left)/float64(centre-left))
		}
		for b := centre; b < min(right, bins) && centre < right; b++ {
			set(b, float64(right-b)/float64(right-centre))
		}
	}
	return out, nil
}
