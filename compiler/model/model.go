// Package model builds well-known networks as ONNX models with made-up weights, for tests, examples and measurements that
// need no download. The weights are random but the same for the same seed, and scaled so that activations stay finite.
package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// networks are the built-in models: each is given the input value and returns the output.
var networks = map[string]network{
	"resnet-18":       image(func(b *builder, x string) string { return resnet(b, x, basicBlock, 1, 2, 2, 2, 2) }),
	"resnet-34":       image(func(b *builder, x string) string { return resnet(b, x, basicBlock, 1, 3, 4, 6, 3) }),
	"resnet-50":       image(func(b *builder, x string) string { return resnet(b, x, bottleneck, 4, 3, 4, 6, 3) }),
	"resnet-101":      image(func(b *builder, x string) string { return resnet(b, x, bottleneck, 4, 3, 4, 23, 3) }),
	"resnet-152":      image(func(b *builder, x string) string { return resnet(b, x, bottleneck, 4, 3, 8, 36, 3) }),
	"resnet-50-v2":    image(func(b *builder, x string) string { return resnetV2(b, x, 3, 4, 6, 3) }),
	"mobilenet-v1":    image(mobilenetV1),
	"mobilenet-v2":    image(mobilenetV2),
	"squeezenet-v1.1": image(squeezenet),
	"vgg-11":          image(func(b *builder, x string) string { return vgg(b, x, 1, 1, 2, 2, 2) }),
	"vgg-16":          image(func(b *builder, x string) string { return vgg(b, x, 2, 2, 3, 3, 3) }),
	"vgg-19":          image(func(b *builder, x string) string { return vgg(b, x, 2, 2, 4, 4, 4) }),
	"mlp":             {input: []int64{784}, build: mlp},
}

// network is the shape of an input without its batch, and what is built on it.
type network struct {
	input []int64
	build func(b *builder, x string) string
}

// image is a network that classifies 224×224 images into 1000 classes.
func image(build func(b *builder, x string) string) network {
	return network{input: []int64{3, 224, 224}, build: build}
}

const (
	opset     = 13
	irVersion = 8
	maxBatch  = 1 << 16
)

// Names lists the built-in models in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(networks)) }

// Build makes a built-in model. Its input is "data" (batch first, images as N, C, H, W), its output "out".
func Build(name string, batch int64, seed uint64) (*onnx.Model, error) {
	n, ok := networks[name]
	if !ok {
		return nil, fmt.Errorf("there is no built-in model %q: choose one of %s", name, strings.Join(Names(), ", "))
	}
	if batch < 1 || batch > maxBatch {
		return nil, fmt.Errorf("batch %d is outside 1 to %d", batch, maxBatch)
	}
	return n.assemble(name, batch, seed), nil
}

func (n network) assemble(name string, batch int64, seed uint64) *onnx.Model {
	b := newBuilder(name, seed)
	b.input("data", append([]int64{batch}, n.input...))
	b.output(n.build(b, "data"), "out")
	return &onnx.Model{
		IRVersion: irVersion, ProducerName: "tilth", Opsets: []onnx.Opset{{Version: opset}}, Graph: b.graph,
	}
}

func valueInfo(name string, shape []int64) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: name, DType: array.Float32, HasShape: true}
	for _, e := range shape {
		v.Shape = append(v.Shape, onnx.Dim{Value: e})
	}
	return v
}
