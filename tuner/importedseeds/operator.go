package importedseeds

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/wire"
)

// Operator is a float32 sum described by another compiler. Use one of the functions below to create it.
type Operator struct {
	node          op.Node
	data, weights []int64
	// constant is set if the weights are compile-time constants. swapped is set if the last two axes of the
	// second operand are transposed.
	constant, swapped bool
	name              string
}

// Window describes a convolution's window: rows, then columns.
type Window struct {
	Strides, Dilations [2]int64
	// Pads lists the padding before the rows and columns, then after them.
	Pads   [4]int64
	Groups int64
}

const (
	// seedsMaxExtent and maxElements bound the tensors in a log, and factors of extents, so that products do not
	// overflow.
	seedsMaxExtent = 1 << 20
	maxElements    = int64(1 << 31)
	// opset is the opset of the operators created here.
	opset = 17
)

// Convolution returns a convolution of data [n,c,h,w] by weights [o,c/groups,kh,kw].
func Convolution(data, weights []int64, w Window) (*Operator, error) {
	if len(data) != 4 || len(weights) != 4 {
		return nil, fmt.Errorf("data %v and weights %v are not of two-dimensional convolutions", data, weights)
	}
	ints := func(name string, values []int64) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: values}
	}
	o := &Operator{data: data, weights: weights, constant: true, node: op.Node{Op: op.Conv, Attrs: map[string]*onnx.Attribute{
		"strides": ints("strides", w.Strides[:]), "dilations": ints("dilations", w.Dilations[:]), "pads": ints("pads", w.Pads[:]),
		"group": {Name: "group", Type: onnx.AttrInt, Int: w.Groups},
	}}}
	if err := o.infer(); err != nil {
		return nil, err
	}
	o.name = fmt.Sprintf("conv2d %dx%dx%dx%d k%dx%d", data[0], data[2], data[3], data[1], weights[2], weights[3])
	if w.Strides != [2]int64{1, 1} {
		o.name += fmt.Sprintf(" s%dx%d", w.Strides[0], w.Strides[1])
	}
	switch {
	case w.Groups > 1 && w.Groups == data[1] && w.Groups == weights[0]:
		o.name += " depthwise"
	case w.Groups > 1:
		o.name += fmt.Sprintf(" g%d", w.Groups)
	}
	o.name += fmt.Sprintf(" -> %d", weights[0])
	return o, nil
}

// Dense returns the product of [m,k] by constant weights [k,n].
func Dense(m, n, k int64) (*Operator, error) {
	o := &Operator{data: []int64{m, k}, weights: []int64{k, n}, constant: true, node: op.Node{Op: op.MatMul}}
	o.name = fmt.Sprintf("dense %dx%d -> %d", m, k, n)
	return o, o.infer()
}

// Products returns the products of [batch,m,k] by [batch,k,n], stored as [batch,n,k] if transposed.
func Products(batch, m, n, k int64, transposed bool) (*Operator, error) {
	o := &Operator{data: []int64{batch, m, k}, weights: []int64{batch, k, n}, swapped: transposed, node: op.Node{Op: op.MatMul}}
	o.name = fmt.Sprintf("matmul %dx%dx%d x %dx%dx%d", batch, m, k, batch, k, n)
	return o, o.infer()
}

// String returns the name used in listings of tasks.
func (o *Operator) String() string { return o.name }

func (o *Operator) infer() (err error) {
	defer schedule.RecoverAs(&err)
	for _, shape := range [][]int64{o.data, o.weights} {
		if err := seedsBounded(shape); err != nil {
			return err
		}
	}
	o.node.Name, o.node.Opset, o.node.Outputs = "anchor", opset, 1
	o.node.In = []op.Value{{Type: op.Type{DType: array.Float32, Shape: extent.Fixed(o.data...)}}, {Type: op.Type{DType: array.Float32, Shape: extent.Fixed(o.weights...)}}}
	if err := op.InferNode(&o.node); err != nil {
		return err
	}
	return seedsBounded(o.node.Out.Shape.Fixed())
}

func seedsBounded(shape []int64) error {
	elements := int64(1)
	for _, e := range shape {
		if e < 1 || e > seedsMaxExtent {
			return fmt.Errorf("an extent of %v is not from 1 to %d", shape, seedsMaxExtent)
		}
		if elements *= e; elements > maxElements {
			return fmt.Errorf("%v has more than %d elements", shape, maxElements)
		}
	}
	return nil
}

// Anchors returns the anchors of the workloads that compute the operator. The channels of a convolution's
// data come last or, at a model's input, first.
func (o *Operator) Anchors() (anchors []string, err error) {
	defer schedule.RecoverAs(&err)
	layouts := [][]int{op.RowMajor(len(o.data))}
	if o.node.Op == op.Conv {
		layouts = append([][]int{op.ChannelsLast(len(o.data))}, layouts...)
	}
	for _, layout := range layouts {
		a, err := o.anchor(layout)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(anchors, a) {
			anchors = append(anchors, a)
		}
	}
	return anchors, nil
}

func (o *Operator) anchor(layout []int) (string, error) {
	l, node := op.NewLowering(nil), o.node
	in := []op.Operand{l.Input(0, "data", node.In[0].Type, layout)}
	switch weights := node.In[1].Type; {
	case o.constant: // whose elements say nothing of the workload
		in = append(in, l.Constant(1, op.Value{Type: weights, Const: &array.Array{DType: weights.DType, Shape: weights.Shape.Fixed()}}))
	case o.swapped:
		in = append(in, l.Input(1, "weights", weights, []int{0, 2, 1}))
	default:
		in = append(in, l.Input(1, "weights", weights, op.RowMajor(weights.Shape.Rank())))
	}
	out, err := op.Lower(l, &node, in)
	if err != nil {
		return "", err
	}
	natural := op.LayoutOf(&node, [][]int{layout, nil})
	w, err := expr.NewWorkload([]*expr.Tensor{l.Store(out, array.Float32, natural)})
	if err != nil {
		return "", err
	}
	a, ok := Anchor(w)
	if !ok {
		return "", errors.New("there is no sum")
	}
	return a, nil
}

// Anchor returns a digest of a workload's heaviest sum and its operands. It is equal for a convolution with
// and without bias, addition and activation. ok is false if there is no sum or an extent is open.
func Anchor(w *expr.Workload) (digest string, ok bool) {
	var heaviest *expr.Tensor
	for _, t := range w.Stages {
		if t.Combiner == expr.Sum && (heaviest == nil || seedsProducts(t) > seedsProducts(heaviest)) {
			heaviest = t
		}
	}
	if heaviest == nil {
		return "", false
	}
	c := copier{}
	sum := c.copy(heaviest)
	if c.open {
		return "", false
	}
	alone, err := expr.NewWorkload([]*expr.Tensor{sum})
	if err != nil {
		return "", false
	}
	return alone.Merge().Digest(), true
}

// seedsProducts returns the total number of terms of a sum.
func seedsProducts(t *expr.Tensor) float64 {
	n := 1.0
	for _, v := range slices.Concat(t.Axes, t.Reduce) {
		n *= float64(v.Extent)
	}
	return n
}

// copier copies tensors without their offsets in larger ones, which depend on the model.
type copier struct {
	made map[*expr.Tensor]*expr.Tensor
	open bool
}

func (c *copier) copy(t *expr.Tensor) *expr.Tensor {
	if made := c.made[t]; made != nil {
		return made
	}
	if c.made == nil {
		c.made = map[*expr.Tensor]*expr.Tensor{}
	}
	made := *t
	made.Strides = nil
	c.made[t] = &made
	for _, v := range slices.Concat(t.Axes, t.Reduce) {
		c.open = c.open || v.Limit != nil
	}
	if t.Role == expr.Computed {
		made.Body = expr.Rewrite(t.Body, func(e expr.Expr) expr.Expr {
			if l, ok := e.(*expr.Load); ok {
				return &expr.Load{Tensor: c.copy(l.Tensor), Index: l.Index}
			}
			return e
		})
	}
	return &made
}

// Points returns the points of a workload's space nearest to its seeds, as text, fastest seed first. A nil file
// returns no points.
func (f *File) Points(w *expr.Workload, t *target.Target, numerics schedule.Numerics) []string {
	tilings := f.tilings(w)
	if len(tilings) == 0 {
		return nil
	}
	s, err := registry.Space(w, t, numerics)
	if err != nil {
		return nil // the job reports the error
	}
	var points []string
	for _, tiling := range tilings {
		p, ok := s.Tiled(tiling)
		if text := s.Format(p); ok && !slices.Contains(points, text) {
			points = append(points, text)
		}
	}
	return points[:min(wire.MaxSeeds, len(points))]
}

// tilings returns the seeds of a workload: the first of each log, then the second of each, and so on.
func (f *File) tilings(w *expr.Workload) (list []searchspace.Tiling) {
	if f == nil || len(f.entries) == 0 {
		return nil
	}
	anchor, ok := Anchor(w)
	if !ok {
		return nil
	}
	for rank := range PerOperator {
		for _, i := range f.at[anchor] {
			if tilings := f.entries[i].Tilings; rank < len(tilings) && !slices.Contains(list, tilings[rank]) {
				list = append(list, tilings[rank])
			}
		}
	}
	return list
}
