package gpu

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// product is a matrix product, m x k by k x n.
type product struct {
	m, k, n int64
	dtype   array.DType
	// numerics is the numerics level. With fast, peers also round float32 to TF32.
	numerics string
}

func (p product) String() string {
	return fmt.Sprintf("%dx%dx%d %v %s", p.m, p.k, p.n, p.dtype, p.numerics)
}

func (p product) step() string { return "product " + p.String() }

// flop returns the number of operations, bytes the minimum traffic.
func (p product) flop() float64 { return 2 * float64(p.m) * float64(p.k) * float64(p.n) }

func (p product) bytes() float64 { return float64((p.m*p.k + p.k*p.n + p.m*p.n) * p.dtype.Bytes()) }

// isSkinny reports whether memory bandwidth bounds the product.
func (p product) isSkinny() bool { return p.m <= 16 }

const (
	// trials is the number of trials of a product, if time permits.
	trials = 200
	// referenceRuns is the number of reference runs on the processor, at referenceRate or more operations per second.
	referenceRuns = 7
	referenceRate = 20e9
	// peersTake is the time to compile and compare products, in addition to their operations at comparedRate per
	// second.
	peersTake    = 25 * time.Second
	comparedRate = 50e9
)

// tuningTime bounds the search.
func (p product) tuningTime() time.Duration {
	return 20*time.Second + time.Duration(referenceRuns*p.flop()/referenceRate*float64(time.Second))
}

func (p product) takes() time.Duration {
	return p.tuningTime() + peersTake + time.Duration(p.flop()/comparedRate*float64(time.Second))
}

// encoded returns the product as a model with both factors as inputs.
func (p product) encoded() []byte {
	m := &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name: "product", Nodes: []*onnx.Node{{Name: "product", Op: "MatMul", Inputs: []string{"a", "b"}, Outputs: []string{"c"}}},
		Inputs:  []*onnx.ValueInfo{value("a", p.dtype, p.m, p.k), value("b", p.dtype, p.k, p.n)},
		Outputs: []*onnx.ValueInfo{value("c", p.dtype, p.m, p.n)},
	}}
	return m.Encode()
}

// value declares an input or output of a model.
func value(name string, d array.DType, shape ...int64) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: name, DType: d, HasShape: true}
	for _, e := range shape {
		v.Shape = append(v.Shape, onnx.Dim{Value: e})
	}
	return v
}

// dtypeNames maps types to PyTorch's names.
var dtypeNames = map[array.DType]string{array.Float32: "float32", array.BFloat16: "bfloat16", array.Float16: "float16"}

// contenders returns cuBLAS and Triton.
func (p product) contenders() []contender {
	q := question{What: "product", M: p.m, K: p.k, N: p.n, DType: dtypeNames[p.dtype], TF32: p.numerics == "fast"}
	t := q
	t.What = "triton"
	return []contender{{"peer", q}, {"triton", t}}
}

// compare tunes a product and compares it with cuBLAS and Triton.
func (p product) compare(ctx context.Context, b *suite, r *result) error {
	model := b.path("product.onnx")
	if err := os.WriteFile(model, p.encoded(), 0o600); err != nil {
		return err
	}
	err := b.compared(ctx, comparison{model, []string{"--numerics", p.numerics}, trials, p.tuningTime(), p.contenders()}, r)
	for _, who := range []string{"tuned", "untuned", "peer", "triton"} {
		if seconds := r.Values[who+"_s"]; seconds > 0 {
			r.Values[who+"_tflops"] = p.flop() / seconds / 1e12
			r.Values[who+"_gbps"] = p.bytes() / seconds / 1e9
		}
	}
	return err
}
