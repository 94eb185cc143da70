package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// product is a matrix product, m x k by k x n.
type product struct {
	m, k, n int64
	dtype   array.DType
	// numerics is what our algorithms may lose; tf32 has cuBLAS round float32 to TF32.
	numerics string
	tf32     bool
}

// products are those that are compared with cuBLAS.
func products() []product {
	var list []product
	for _, size := range []int64{1024, 4096} {
		list = append(list,
			product{size, size, size, array.BFloat16, "strict", false},
			product{size, size, size, array.Float32, "strict", false},
			product{size, size, size, array.Float32, "default", false},
			product{size, size, size, array.Float32, "fast", true},
		)
	}
	for _, m := range []int64{1, 8, 16} {
		list = append(list, product{m, 4096, 14336, array.BFloat16, "strict", false})
	}
	return list
}

func (p product) String() string {
	return fmt.Sprintf("%dx%dx%d %v %s", p.m, p.k, p.n, p.dtype, p.numerics)
}

// takes grows with what the reference takes, which a processor computes once.
func (p product) takes() time.Duration {
	return 15*time.Second + time.Duration(float64(p.m)*float64(p.k)*float64(p.n)/1e9*float64(time.Second))
}

// encoded is the product as a model, both of whose factors are inputs.
func (p product) encoded() []byte {
	value := func(name string, shape ...int64) *onnx.ValueInfo {
		v := &onnx.ValueInfo{Name: name, DType: p.dtype, HasShape: true}
		for _, e := range shape {
			v.Shape = append(v.Shape, onnx.Dim{Value: e})
		}
		return v
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name: "product", Nodes: []*onnx.Node{{Name: "product", Op: "MatMul", Inputs: []string{"a", "b"}, Outputs: []string{"c"}}},
		Inputs: []*onnx.ValueInfo{value("a", p.m, p.k), value("b", p.k, p.n)}, Outputs: []*onnx.ValueInfo{value("c", p.m, p.n)},
	}}
	return m.Encode()
}

// trials is how many candidates of a product are measured.
const trials = 64

// product tunes a product and compares it with cuBLAS.
func (b *bench) product(ctx context.Context, p product, r *result) error {
	model := b.path("product.onnx")
	if err := os.WriteFile(model, p.encoded(), 0o600); err != nil {
		return err
	}
	flop := 2 * float64(p.m) * float64(p.k) * float64(p.n)
	peer := func(ctx context.Context) (float64, error) {
		return b.peer(ctx, question{What: "product", M: p.m, K: p.k, N: p.n, DType: dtypeNames[p.dtype], TF32: p.tf32})
	}
	err := b.compared(ctx, tuning{model, []string{"--numerics", p.numerics}, trials}, peer, r)
	for name, seconds := range r.Values {
		switch name {
		case "tuned_s", "untuned_s", "peer_s":
			r.Values[name[:len(name)-2]+"_tflops"] = flop / seconds / 1e12
		}
	}
	return err
}

// dtypeNames are what PyTorch calls types.
var dtypeNames = map[array.DType]string{array.Float32: "float32", array.BFloat16: "bfloat16", array.Float16: "float16"}

// tuning is how a model is tuned.
type tuning struct {
	model string
	// flags are for tuning and compiling.
	flags  []string
	trials int
}

// rounds is how often ours and a peer's take turns.
const rounds = 5

// timed is what 'tilth run --print-time --json' says.
type timed struct {
	Device struct {
		Median float64 `json:"median"`
	} `json:"device_time_ms"`
}

// compared tunes a model, and times its packages in turns with a peer.
func (b *bench) compared(ctx context.Context, t tuning, peer func(context.Context) (float64, error), r *result) error {
	records, packages := b.path("records.db"), map[string]string{"untuned_s": b.path("untuned.tar"), "tuned_s": b.path("tuned.tar")}
	with := func(command string, more ...string) []string {
		return slices.Concat([]string{command, t.model, "--target", "cuda"}, t.flags, more)
	}
	if _, err := b.run(ctx, with("compile", "--untuned", "-o", packages["untuned_s"])...); err != nil {
		return err
	}
	begin := time.Now()
	var summary struct {
		Trials int `json:"trials"`
		Tasks  []struct {
			Errors   map[string]int    `json:"errors"`
			Messages map[string]string `json:"messages"`
		} `json:"tasks"`
	}
	tune := with("tune", "--records", records, "--sandbox", b.sandbox, "--quiet", "--trials", strconv.Itoa(t.trials))
	if err := b.ask(ctx, &summary, tune...); err != nil {
		return err
	}
	if summary.Trials > 0 {
		r.Values["trial_s"] = time.Since(begin).Seconds() / float64(summary.Trials)
	}
	for _, task := range summary.Tasks {
		for class, n := range task.Errors {
			r.Values["errors "+class] += float64(n)
			r.Notes[class] = task.Messages[class]
		}
	}
	if _, err := b.run(ctx, with("compile", "--records", records, "-o", packages["tuned_s"])...); err != nil {
		return err
	}
	samples := map[string][]float64{}
	for range rounds {
		for name, pkg := range packages {
			var took timed
			if err := b.ask(ctx, &took, "run", pkg, "--print-time", "--repeat", "50"); err != nil {
				return err
			}
			samples[name] = append(samples[name], took.Device.Median/1e3)
		}
		if b.python == "" {
			continue
		}
		seconds, err := peer(ctx)
		if err != nil {
			r.Notes["peer"] = err.Error()
			continue
		}
		samples["peer_s"] = append(samples["peer_s"], seconds)
	}
	for name, list := range samples {
		r.Values[name] = median(list)
	}
	if r.Values["peer_s"] > 0 {
		r.Values["of_peer"] = r.Values["peer_s"] / r.Values["tuned_s"]
	}
	return nil
}
