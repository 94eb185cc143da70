package operators

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// library are operators that libraries optimise, in each element type: the layers of ResNet-50 (He et al., CVPR
// 2016), VGG-16 (Simonyan and Zisserman, ICLR 2015), MobileNet v2 (Sandler et al., CVPR 2018) and GoogLeNet (Szegedy
// et al., CVPR 2015), grouped and depthwise convolutions, the products of BERT (Devlin et al., NAACL 2019) and ViT
// (Dosovitskiy et al., ICLR 2021), and the single-row products of language models.
var library = slices.Concat(libraryOf(floats), libraryOf(halves), libraryOf(integers))

// libraryOf returns the families of an element type, with names that end in the type's name.
func libraryOf(of element) []family {
	unrated := of != floats
	return []family{
		{name: "Convolution " + of.name, build: layer(of), unrated: unrated, question: of.convolution, shapes: [][]int64{
			{224, 224, 3, 64, 7, 2, 3}, {56, 56, 64, 64, 3, 1, 1}, {28, 28, 128, 128, 3, 1, 1}, {14, 14, 256, 256, 3, 1, 1},
			{7, 7, 512, 512, 3, 1, 1}, {56, 56, 128, 128, 3, 2, 1}, {28, 28, 256, 256, 3, 2, 1}, {14, 14, 512, 512, 3, 2, 1},
			{56, 56, 64, 64, 1, 1, 0}, {56, 56, 64, 256, 1, 1, 0}, {56, 56, 256, 64, 1, 1, 0}, {28, 28, 128, 512, 1, 1, 0},
			{28, 28, 512, 128, 1, 1, 0}, {14, 14, 256, 1024, 1, 1, 0}, {14, 14, 1024, 256, 1, 1, 0}, {7, 7, 512, 2048, 1, 1, 0},
			{7, 7, 2048, 512, 1, 1, 0}, {56, 56, 256, 512, 1, 2, 0}, {28, 28, 512, 1024, 1, 2, 0}, {14, 14, 1024, 2048, 1, 2, 0},
			{224, 224, 64, 64, 3, 1, 1}, {112, 112, 128, 128, 3, 1, 1}, {56, 56, 256, 256, 3, 1, 1}, {28, 28, 512, 512, 3, 1, 1},
			{14, 14, 512, 512, 3, 1, 1}, {112, 112, 32, 16, 1, 1, 0}, {112, 112, 16, 96, 1, 1, 0}, {56, 56, 24, 144, 1, 1, 0},
			{56, 56, 144, 24, 1, 1, 0}, {28, 28, 32, 192, 1, 1, 0}, {14, 14, 64, 384, 1, 1, 0}, {14, 14, 96, 576, 1, 1, 0},
			{7, 7, 160, 960, 1, 1, 0}, {7, 7, 320, 1280, 1, 1, 0}, {28, 28, 16, 32, 5, 1, 2}, {7, 7, 48, 128, 5, 1, 2},
		}},
		{name: "Grouped " + of.name, build: layer(of), unrated: unrated, question: of.convolution, shapes: [][]int64{
			{56, 56, 128, 128, 3, 1, 1, 1, 32}, {28, 28, 256, 256, 3, 1, 1, 1, 32}, {14, 14, 512, 512, 3, 1, 1, 1, 32},
			{7, 7, 1024, 1024, 3, 1, 1, 1, 32}, {28, 28, 104, 104, 3, 1, 1, 1, 13}, {14, 14, 208, 208, 3, 1, 1, 1, 26},
		}},
		{name: "Depthwise " + of.name, build: depthwiseLayer(of), unrated: unrated, question: of.depthwise, shapes: [][]int64{
			{112, 112, 32, 3, 1, 1}, {112, 112, 96, 3, 2, 1}, {56, 56, 144, 3, 1, 1}, {28, 28, 192, 3, 1, 1}, {14, 14, 384, 3, 1, 1},
			{14, 14, 576, 3, 1, 1}, {7, 7, 960, 3, 1, 1}, {28, 28, 240, 5, 1, 2}, {56, 56, 96, 7, 1, 3}, {14, 14, 384, 7, 1, 3},
		}},
		{name: "Product " + of.name, build: product(of), unrated: unrated, question: of.products, shapes: [][]int64{
			{128, 512, 512}, {128, 2048, 512}, {128, 512, 2048}, {128, 768, 768}, {128, 3072, 768}, {128, 768, 3072}, {197, 768, 768},
			{197, 3072, 768}, {512, 1024, 1024}, {1, 4096, 4096}, {1, 11008, 4096}, {1, 14336, 4096}, {1, 1000, 2048},
		}},
	}
}

// layer is a convolution with bias and ReLU.
func layer(of element) func(batch int64, shape []int64) (*expr.Tensor, float64) {
	return func(batch int64, shape []int64) (*expr.Tensor, float64) {
		t, flop := geometryOf(2, shape).convolve(batch, of)
		return of.finished(t, true), flop
	}
}

func depthwiseLayer(of element) func(batch int64, shape []int64) (*expr.Tensor, float64) {
	return func(batch int64, shape []int64) (*expr.Tensor, float64) {
		t, flop := depthwiseOf(batch, shape, of)
		return of.finished(t, true), flop
	}
}

// product is a product with constant weights and a bias. Shapes are rows, columns and depth; a batch multiplies the
// rows.
func product(of element) func(batch int64, shape []int64) (*expr.Tensor, float64) {
	return func(batch int64, shape []int64) (*expr.Tensor, float64) {
		rows, columns, depth := batch*shape[0], shape[1], shape[2]
		a, b := expr.NewInput("a", of.operand, rows, depth), expr.NewConstant("b", of.weights, depth, columns)
		t := expr.ReduceOver("product", expr.Sum, []int64{rows, columns}, []int64{depth}, func(i, r []expr.Expr) expr.Expr {
			return of.product(a.At(i[0], r[0]), b.At(r[0], i[1]))
		})
		return of.finished(t, false), 2 * float64(rows*columns*depth)
	}
}

// convolution returns the request for a layer.
func (e element) convolution(batch int64, shape []int64) string {
	g := geometryOf(2, shape)
	return question("convolution", e.name, batch, g.spatial[0], g.spatial[1], g.in, g.out, g.kernel, g.stride, g.pad, g.dilation, g.groups)
}

func (e element) depthwise(batch int64, shape []int64) string {
	channels := shape[2]
	return e.convolution(batch, append(slices.Insert(slices.Clone(shape), 3, channels), 1, channels))
}

func (e element) products(batch int64, shape []int64) string {
	return question("product", e.name, batch*shape[0], shape[1], shape[2])
}

// question formats a request to a peer.
func question(kind, element string, numbers ...int64) string {
	return kind + " " + element + " " + strings.Trim(fmt.Sprint(numbers), "[]")
}
