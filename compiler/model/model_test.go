package model

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// published is each network's number of convolutions and of multiply-adds in billions.
var published = map[string]struct {
	convs int
	macs  float64
}{
	"resnet-18": {20, 1.82}, "resnet-34": {36, 3.67}, "resnet-50": {53, 4.11}, "resnet-101": {104, 7.83}, "resnet-152": {155, 11.56},
	"resnet-50-v2": {53, 4.11}, "mobilenet-v1": {27, 0.57}, "mobilenet-v2": {52, 0.30}, "squeezenet-v1.1": {26, 0.35},
	"vgg-11": {8, 7.61}, "vgg-16": {13, 15.47}, "vgg-19": {16, 19.63}, "mlp": {0, 0},
}

func program(t *testing.T, m *onnx.Model) *graph.Program {
	t.Helper()
	p, err := graph.Import(m, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNetworksHaveTheirPublishedSize(t *testing.T) {
	for name, want := range published {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(name, 1)
			b.fill = func(*array.Array, float64, float64) {} // sizes only
			b.input("data", append([]int64{1}, networks[name].input...))
			networks[name].build(b, "data")
			weights := map[string]*array.Array{}
			for _, w := range b.graph.Initializers {
				weights[w.Name] = w.Value
			}
			convs, macs := 0, 0.0
			for _, n := range b.graph.Nodes {
				if n.Op == "Conv" || n.Op == "Gemm" {
					w := weights[n.Inputs[1]]
					macs += float64(array.Elements(b.shapes[n.Outputs[0]])*w.Len()/w.Shape[0]) / 1e9
				}
				if n.Op == "Conv" {
					convs++
				}
			}
			if convs != want.convs {
				t.Errorf("%d convolutions, want %d", convs, want.convs)
			}
			if math.Abs(macs-want.macs) > 0.01*want.macs+0.005 {
				t.Errorf("%.2f billion multiply-adds, want %.2f", macs, want.macs)
			}
		})
	}
}

func TestNetworksBecomeTasks(t *testing.T) {
	for _, c := range []struct {
		name         string
		calls, tasks int
	}{
		{"resnet-18", 23, 18}, {"mobilenet-v1", 29, 21}, {"squeezenet-v1.1", 38, 26}, {"mlp", 4, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Build(c.name, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if p := program(t, m); len(p.Calls) != c.calls || len(p.Tasks) != c.tasks {
				t.Errorf("%d calls of %d tasks, want %d of %d", len(p.Calls), len(p.Tasks), c.calls, c.tasks)
			}
		})
	}
}

func TestBuildIsDeterministic(t *testing.T) {
	encode := func(seed uint64) []byte {
		m, err := Build("squeezenet-v1.1", 1, seed)
		if err != nil {
			t.Fatal(err)
		}
		return m.Encode()
	}
	if !bytes.Equal(encode(7), encode(7)) {
		t.Error("one seed gave two models")
	}
	if bytes.Equal(encode(7), encode(8)) {
		t.Error("two seeds gave one model")
	}
}

func TestActivationsStayFinite(t *testing.T) {
	for name, build := range map[string]func(b *builder, x string) string{
		"squeezenet": squeezenet,
		"mobilenet":  mobilenetV2,
		"resnet":     func(b *builder, x string) string { return resnet(b, x, basicBlock, 1, 2, 2) },
		"resnet v2":  func(b *builder, x string) string { return resnetV2(b, x, 2, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			m := network{[]int64{3, 40, 40}, build}.assemble(name, 2, 3)
			back, err := onnx.Read(m.Encode())
			if err != nil {
				t.Fatal(err)
			}
			p := program(t, back)
			in := array.New(array.Float32, p.Values[p.Inputs[0]].Shape...)
			for i := range in.Len() {
				in.SetFloat(i, math.Sin(float64(i)))
			}
			outs, err := p.Evaluate(map[string]*array.Array{"data": in})
			if err != nil {
				t.Fatal(err)
			}
			var largest float64
			for i := range outs["out"].Len() {
				largest = max(largest, math.Abs(outs["out"].Float(i)))
			}
			if !(largest > 1e-3 && largest < 1e4) {
				t.Errorf("largest output is %g", largest)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	if _, err := Build("resnet-19", 1, 1); err == nil || !strings.Contains(err.Error(), "resnet-18") {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := Build("mlp", 0, 1); err == nil || !strings.Contains(err.Error(), "batch 0") {
		t.Errorf("batch 0: %v", err)
	}
}
