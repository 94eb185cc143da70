package modelzoo

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// bias is the kind of bias of a convolution.
type bias int

const (
	// folded is a bias that contains the normalisation after the convolution, as exporters write it.
	folded bias = iota
	// learned is a bias of the convolution's own.
	learned
	noBias
)

// convolution holds attributes as in ONNX, equal along all spatial axes. Stride 0 and groups 0 mean 1. Gain scales
// the weights; 0 means 1.
type convolution struct {
	channels, kernel, stride, pad, groups int64
	gain                                  float64
	bias                                  bias
}

// window describes a convolution or a pool along each spatial axis.
type window struct{ kernel, stride, pad []int64 }

// cube returns the same window along all axes.
func cube(rank int, kernel, stride, pad int64) window {
	all := func(v int64) []int64 { return slices.Repeat([]int64{v}, rank) }
	return window{all(kernel), all(max(1, stride)), all(pad)}
}

// shape returns the output shape for an input (batch, channels, spatial axes).
func (w window) shape(in []int64, channels int64) []int64 {
	shape := []int64{in[0], channels}
	for k, extent := range in[2:] {
		shape = append(shape, (extent+2*w.pad[k]-w.kernel[k])/w.stride[k]+1)
	}
	return shape
}

func (w window) attributes() []*onnx.Attribute {
	return []*onnx.Attribute{ints("kernel_shape", w.kernel...), ints("pads", slices.Concat(w.pad, w.pad)...), ints("strides", w.stride...)}
}

func (b *builder) conv(x string, c convolution) string {
	return b.windowed(x, cube(len(b.shapes[x])-2, c.kernel, c.stride, c.pad), c)
}

// windowed is conv with a window in place of the kernel, the stride and the pad.
func (b *builder) windowed(x string, w window, c convolution) string {
	in := b.shapes[x]
	c.groups = max(1, c.groups)
	c.gain = cmp.Or(c.gain, 1)
	limit := c.gain * he(in[1]/c.groups*array.Elements(w.kernel))
	weight := b.weights("conv.weight", 0, limit, slices.Concat([]int64{c.channels, in[1] / c.groups}, w.kernel)...)
	inputs := append([]string{x, weight}, b.bias("conv.bias", c.bias, c.channels)...)
	attributes := append(w.attributes(), ints("dilations", cube(len(in)-2, 1, 1, 0).kernel...), integer("group", c.groups))
	return b.add("Conv", w.shape(in, c.channels), inputs, attributes...)
}

func (b *builder) bias(name string, kind bias, channels int64) []string {
	switch kind {
	case noBias:
		return nil
	case folded:
		b.parameters += channels // a normalisation has a scale as well
	}
	return []string{b.weights(name, 0, 0.1, channels)}
}

// deconv is a transposed convolution without bias.
func (b *builder) deconv(x string, c convolution) string {
	in := b.shapes[x]
	w := cube(len(in)-2, c.kernel, c.stride, c.pad)
	shape := []int64{in[0], c.channels}
	perOutput := in[1]
	for k, extent := range in[2:] {
		shape = append(shape, (extent-1)*w.stride[k]-2*w.pad[k]+w.kernel[k])
		perOutput *= max(1, min(extent, w.kernel[k]/w.stride[k]))
	}
	weight := b.weights("deconv.weight", 0, he(perOutput), slices.Concat([]int64{in[1], c.channels}, w.kernel)...)
	attributes := append(w.attributes(), ints("dilations", cube(len(in)-2, 1, 1, 0).kernel...), integer("group", 1))
	return b.add("ConvTranspose", shape, []string{x, weight}, attributes...)
}

// batchNorm has statistics near mean 0 and variance 1.
func (b *builder) batchNorm(x string) string {
	c := b.shapes[x][1]
	return b.add("BatchNormalization", b.shapes[x], []string{
		x, b.weights("norm.scale", 1, 0.2, c), b.weights("norm.bias", 0, 0.1, c),
		b.statistics("norm.mean", 0, 0.1, c), b.statistics("norm.var", 1, 0.2, c),
	})
}

func (b *builder) maxPool(x string, kernel, stride, pad int64) string {
	w := cube(len(b.shapes[x])-2, kernel, stride, pad)
	return b.add("MaxPool", w.shape(b.shapes[x], b.shapes[x][1]), []string{x}, w.attributes()...)
}

// averagePool counts padding as zeros.
func (b *builder) averagePool(x string, kernel, stride, pad int64) string {
	w := cube(len(b.shapes[x])-2, kernel, stride, pad)
	attributes := append(w.attributes(), integer("count_include_pad", 1))
	return b.add("AveragePool", w.shape(b.shapes[x], b.shapes[x][1]), []string{x}, attributes...)
}

func (b *builder) globalAveragePool(x string) string {
	shape := slices.Clone(b.shapes[x])
	for k := range shape[2:] {
		shape[2+k] = 1
	}
	return b.add("GlobalAveragePool", shape, []string{x})
}

func (b *builder) flatten(x string) string {
	in := b.shapes[x]
	return b.add("Flatten", []int64{in[0], array.Elements(in[1:])}, []string{x}, integer("axis", 1))
}

// dense is a fully connected layer on rows (batch, features).
func (b *builder) dense(x string, channels int64) string {
	in := b.shapes[x]
	weight := b.weights("dense.weight", 0, he(in[1]), channels, in[1])
	return b.add("Gemm", []int64{in[0], channels}, []string{x, weight, b.weights("dense.bias", 0, 0.1, channels)}, integer("transB", 1))
}

// classify averages each channel and scores classes.
func (b *builder) classify(x string, classes int64) string {
	return b.dense(b.flatten(b.globalAveragePool(x)), classes)
}
