package modelzoo

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// published holds each network's number of parameters, and of multiply-adds in billions in its convolutions and
// products at the default size. Sources: torchvision's table of models (r3d_18 as resnet3d-18), Keras
// (mobilenet-v1), Gluon (resnet-50-v2: its 25595060 less 45568 statistics and 12 of a normalisation of the input),
// Hugging Face (bert, gpt2, SmolLM-135M), llama2.c (stories260K), PyTorch's DCGAN tutorial.
var published = map[string]struct {
	parameters int64
	macs       float64
}{
	"resnet-18": {11689512, 1.814}, "resnet-34": {21797672, 3.664}, "resnet-50": {25557032, 4.089}, "resnet-101": {44549160, 7.801},
	"resnet-152": {60192808, 11.514}, "resnet-50-v2": {25549480, 4.089}, "resnet3d-18": {33371472, 40.697},
	"vgg-11": {132863336, 7.609}, "vgg-16": {138357544, 15.470}, "vgg-19": {143667240, 19.632},
	"mobilenet-v1": {4231976, 0.569}, "mobilenet-v2": {3504872, 0.301}, "mobilenet-v3": {5483032, 0.217},
	"squeezenet-v1.1": {1235496, 0.349}, "inception-v3": {23834568, 5.713}, "densenet-121": {7978856, 2.834},
	"efficientnet-b0": {5288548, 0.386}, "dcgan": {3576704, 0}, "mlp": {235146, 0}, "lstm": {19780400, 0},
	"bert-tiny": {4385920, 0}, "bert-small": {28763648, 0}, "bert-base": {109482240, 0},
	"vit-b-16": {86567656, 17.565}, "gpt-small": {124439808, 0},
	"resnext-50-32x4d": {25028904, 4.230}, "regnet-y-400mf": {4344144, 0.402}, "shufflenet-v2": {2278604, 0.145},
	"ssdlite-320": {3440060, 0.583}, "convnext-tiny": {28589128, 4.456}, "llama-tiny": {260032, 0}, "llama-small": {134515008, 0},
}

func TestNetworksHaveTheirPublishedSize(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			want := published[name]
			_, b, err := assemble(name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if b.parameters != want.parameters {
				t.Errorf("%d parameters, want %d", b.parameters, want.parameters)
			}
			if macs := multiplyAdds(b); want.macs > 0 && math.Abs(macs-want.macs) > 0.005*want.macs {
				t.Errorf("%.3f billion multiply-adds, want %.3f", macs, want.macs)
			}
		})
	}
}

// sinceOpset is the first operator set that has an operator, of those that models use and 13 does not have.
var sinceOpset = map[string]int64{
	"HardSwish": 14, "Trilu": 14, "LayerNormalization": 17, "GroupNormalization": 18, "Gelu": 20, "Attention": 23,
	"RMSNormalization": 23, "RotaryEmbedding": 23,
}

// TestModelsHaveTheOperatorsOfTheirSet: other runtimes refuse a model with an operator that its set does not have.
func TestModelsHaveTheOperatorsOfTheirSet(t *testing.T) {
	for _, name := range Names() {
		m, b, err := assemble(name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range b.graph.Nodes {
			if since := sinceOpset[node.Op]; node.Domain == "" && since > onnx.OpsetOf(m.Opsets, "") {
				t.Errorf("%s is of operator set %d, %s of %d", name, onnx.OpsetOf(m.Opsets, ""), node.Op, since)
				break
			}
		}
	}
}

// multiplyAdds returns those of convolutions and products with weights, in billions.
func multiplyAdds(b *builder) float64 {
	total := 0.0
	for _, n := range b.graph.Nodes {
		w := func() []int64 { return b.shapes[n.Inputs[1]] }
		out := float64(array.Elements(b.shapes[n.Outputs[0]]))
		switch n.Op {
		case "Conv":
			total += out * float64(array.Elements(w()[1:]))
		case "Gemm":
			total += out * float64(array.Elements(w())) / float64(b.shapes[n.Outputs[0]][1])
		case "MatMul":
			in := b.shapes[n.Inputs[0]]
			total += out * float64(in[len(in)-1])
		}
	}
	return total / 1e9
}

func TestNetworksBecomeTasks(t *testing.T) {
	for _, c := range []struct {
		name         string
		calls, tasks int
	}{
		{"resnet-18", 23, 18}, {"mobilenet-v1", 29, 21}, {"squeezenet-v1.1", 30, 22}, {"mlp", 4, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Build(c.name, Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := frontend.Import(m, frontend.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Calls) != c.calls || len(p.Tasks) != c.tasks {
				t.Errorf("%d calls of %d tasks, want %d of %d", len(p.Calls), len(p.Tasks), c.calls, c.tasks)
			}
		})
	}
}

func TestWriteMatchesBuild(t *testing.T) {
	for _, name := range []string{"squeezenet-v1.1", "bert-tiny"} {
		m, err := Build(name, Options{Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		var written, other bytes.Buffer
		if _, err := Write(&written, name, Options{Seed: 7}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written.Bytes(), m.Encode()) {
			t.Errorf("%s: the file differs from the model", name)
		}
		if _, err := Write(&other, name, Options{Seed: 8}); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(written.Bytes(), other.Bytes()) {
			t.Errorf("%s: two seeds gave one model", name)
		}
	}
}

// small are networks of each family that are quick to evaluate, for a batch of one image or two sequences of 6 tokens.
var small = map[string]network{
	"squeezenet":   {opset: 13, build: classifier(squeezenet, 3, 40, 40)},
	"mobilenet v2": {opset: 13, build: classifier(mobilenetV2, 3, 40, 40)},
	"mobilenet v3": {opset: 14, build: classifier(mobilenetV3, 3, 40, 40)},
	"efficientnet": {opset: 13, build: classifier(efficientnet, 3, 40, 40)},
	"resnet":       {opset: 13, build: classifier(resnet{basicBlock, 1, []int{2, 2}}.build, 3, 40, 40)},
	"resnet 3d":    {opset: 13, build: classifier(resnet3D{[]int{1, 1}}.build, 3, 2, 10, 10)},
	"resnet v2":    {opset: 13, build: classifier(resnetV2{[]int{2, 2}}.build, 3, 40, 40)},
	"densenet":     {opset: 13, build: classifier(densenet{8, []int{3, 3}}.build, 3, 40, 40)},
	"inception":    {opset: 13, build: classifier(inceptionV3{8}.build, 3, 75, 75)},
	"dcgan":        {opset: 13, build: dcgan{4}.build},
	"lstm":         {opset: 13, maxSeq: 6, build: lstm{2, 8, 50}.build},
	"bert":         {opset: 13, maxSeq: 6, build: bert{2, 16, 2}.build},
	"gpt":          {opset: 17, maxSeq: 6, build: gpt{2, 16, 2, 50}.build},
	"ssdlite":      {opset: 14, build: ssdlite{size: 48, classes: 4, blocks: mobilenetV3Blocks(4)[8:], extra: []int64{8}, detections: 5}.build},
	"llama":        {opset: 17, maxSeq: 6, build: llama{2, 16, 4, 2, 24, 50}.build},
	"resnext":      {opset: 13, build: classifier(resnet{grouped(8, 4), 4, []int{1, 1}}.build, 3, 40, 40)},
	"regnet":       {opset: 13, build: classifier(regnet{8, []regnetStage{{16, 1}, {24, 2}}}.build, 3, 40, 40)},
	"shufflenet":   {opset: 13, build: classifier(shufflenetV2{[3]int64{8, 16, 32}, 64}.build, 3, 40, 40)},
	"convnext":     {opset: 17, build: classifier(convnext{[]int64{16, 32}, []int{1, 2}}.build, 3, 40, 40)},
	"vit":          {opset: 17, build: classifier(vit{2, 16, 2, 8}.build, 3, 32, 32)},
}

// alike are networks that are made of the same blocks as others of small, and take longer.
var alike = []string{"mobilenet v3", "efficientnet", "resnet v2", "densenet", "inception", "resnext", "regnet", "shufflenet", "vit"}

// TestOutputsAreInformative: finite, neither zero nor the same everywhere, and different for another input.
func TestOutputsAreInformative(t *testing.T) {
	for name, n := range small {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && slices.Contains(alike, name) {
				t.Skip("slow: evaluates a network of the same blocks as another")
			}
			b := newBuilder(name, 3)
			s := size{batch: 1, seq: 6}
			if n.maxSeq > 0 {
				s.batch = 2
			}
			n.build(b, s)
			b.materialise()
			p := importEncoded(t, &onnx.Model{IRVersion: irVersion, Opsets: []onnx.Opset{{Version: n.opset}}, Graph: b.graph})
			first, second := evaluated(t, p, 1), evaluated(t, p, 2)
			for name, out := range first {
				if !b.isShape(name, out.Shape) {
					t.Errorf("output %s has shape %v, want %v", name, out.Shape, b.shapes[name])
				}
				if !out.DType.IsFloat() {
					continue
				}
				low, high := extremes(out)
				if !(high-low > 1e-3 && max(-low, high) < 1e4) {
					t.Errorf("output %s is in %g to %g", name, low, high)
				}
				if bytes.Equal(out.Data, second[name].Data) {
					t.Errorf("output %s does not depend on the input", name)
				}
			}
		})
	}
}

// isShape reports whether an output may have a shape: extents that depend on data are at most those that are known.
func (b *builder) isShape(output string, shape []int64) bool {
	known := slices.Clone(b.shapes[output])
	for _, info := range b.graph.Outputs {
		for axis, d := range info.Shape {
			if info.Name == output && d.Value < 0 && len(shape) == len(known) && shape[axis] > 0 {
				known[axis] = min(known[axis], shape[axis])
			}
		}
	}
	return slices.Equal(shape, known)
}

func importEncoded(t *testing.T, m *onnx.Model) *program.Program {
	t.Helper()
	back, err := onnx.Read(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(back, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// evaluated gives token inputs small numbers, all others numbers in [-1, 1]. A mask hides nothing.
func evaluated(t *testing.T, p *program.Program, phase float64) map[string]*array.Array {
	t.Helper()
	inputs := map[string]*array.Array{}
	for _, v := range p.Inputs {
		value := p.Values[v]
		a := array.New(value.DType, value.Shape...)
		for i := range a.Len() {
			switch {
			case value.DType == array.Float32:
				a.SetFloat(i, math.Sin(float64(i)*phase))
			case strings.Contains(value.Name, "mask"):
				a.SetInt(i, 1)
			case value.Name == "input_ids" || value.Name == "tokens":
				a.SetInt(i, i*int64(phase)+1)
			}
		}
		inputs[value.Name] = a
	}
	outs, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

func extremes(a *array.Array) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range a.Len() {
		v := a.Float(i)
		if math.IsNaN(v) {
			return v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func TestNamesAreSorted(t *testing.T) {
	if names := Names(); !slices.IsSorted(names) {
		t.Errorf("%q are not in order", names)
	}
}

func TestBuildRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"resnet-19", Options{}, "resnet-18"},
		{"mlp", Options{Batch: -1}, "batch -1"},
		{"mlp", Options{Seq: 3}, "reads no text"},
		{"bert-tiny", Options{Seq: 513}, "513 tokens are outside 1 to 512"},
	} {
		if _, err := Build(c.name, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: got %v, want %q", c.name, c.options, err, c.want)
		}
	}
}

// Outputs of a model whose batch and number of tokens are open said the extents of an example.
func TestOutputsOfAnOpenModelAreOpen(t *testing.T) {
	for name, shapes := range map[string][]string{"bert-tiny": {"batch sequence 128", "batch 128"}, "mlp": {"batch 10"}} {
		m, err := Build(name, Options{Open: true, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range shapes {
			var got []string
			for _, d := range m.Graph.Outputs[k].Shape {
				got = append(got, cmp.Or(d.Param, fmt.Sprint(d.Value)))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("output %s of %s has the shape %q, want %q", m.Graph.Outputs[k].Name, name, got, want)
			}
		}
	}
}
