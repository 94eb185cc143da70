package op

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

// The getters below return def if the attribute is absent. A wrong attribute type fails the node's Infer.

func (n *Node) attr(name string, t onnx.AttributeType) *onnx.Attribute {
	a := n.Attrs[name]
	if a == nil {
		return nil
	}
	if a.Type != t {
		n.fail("attribute %q has type %d, want %d", name, a.Type, t)
		return nil
	}
	return a
}

func (n *Node) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

// check ends the rule at the first failure of a getter.
func (n *Node) check() {
	if n.err != nil {
		panic(failure{n.err})
	}
}

// Err returns the first failure of a getter.
func (n *Node) Err() error { return n.err }

// Int returns an integer attribute.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.attr(name, onnx.AttrInt); a != nil {
		return a.Int
	}
	return def
}

// Float returns a floating-point attribute.
func (n *Node) Float(name string, def float64) float64 {
	if a := n.attr(name, onnx.AttrFloat); a != nil {
		return float64(a.Float)
	}
	return def
}

// Text returns a string attribute.
func (n *Node) Text(name, def string) string {
	if a := n.attr(name, onnx.AttrString); a != nil {
		return a.String
	}
	return def
}

// Ints returns a list of integers.
func (n *Node) Ints(name string, def []int64) []int64 {
	if a := n.attr(name, onnx.AttrInts); a != nil {
		return a.Ints
	}
	return def
}

// Floats returns a list of floating-point numbers.
func (n *Node) Floats(name string) []float32 {
	if a := n.attr(name, onnx.AttrFloats); a != nil {
		return a.Floats
	}
	return nil
}

// Texts returns a list of strings.
func (n *Node) Texts(name string) []string {
	if a := n.attr(name, onnx.AttrStrings); a != nil {
		return a.Strings
	}
	return nil
}

// Graph returns a graph attribute, which is required.
func (n *Node) Graph(name string) *onnx.Graph {
	if n.Attrs[name] == nil {
		n.fail("attribute %q is missing", name)
	}
	if a := n.attr(name, onnx.AttrGraph); a != nil {
		return a.Graph
	}
	return nil
}

// Tensor returns a tensor attribute, or nil if it is absent.
func (n *Node) Tensor(name string) *array.Array {
	if a := n.attr(name, onnx.AttrTensor); a != nil && a.Tensor != nil {
		return a.Tensor.Value
	}
	return nil
}

// maxListed limits the known operands that are read as lists of integers: shapes, axes, pads.
const maxListed = 1 << 16

// Has reports whether operand k was given.
func (n *Node) Has(k int) bool { return k < len(n.In) && n.In[k].Present() }

// IsChoice reports whether the result is one of two operands, selected by a single computed bool.
func (n *Node) IsChoice() bool {
	return n.Is(Where) && n.In[0].Shape.Elements().Is(1) && n.In[0].Const == nil
}

// KnownInts returns operand k, which must be known, as a list of integers; what names it in errors.
func (n *Node) KnownInts(k int, what string) []int64 {
	a := n.In[k].Const
	if n.In[k].Numbers != nil {
		n.fail("input %d (%s) depends on an open extent, which is not supported here: fix the extent by --shape", k, what)
		return nil
	}
	if a == nil {
		n.fail("input %d (%s) is not constant: dynamic shapes are not supported, export the model with static shapes", k, what)
		return nil
	}
	if a.DType.IsFloat() || a.Len() > maxListed {
		n.fail("input %d (%s) is %v%v, not a list of integers", k, what, a.DType, a.Shape)
		return nil
	}
	values := make([]int64, a.Len())
	for i := range values {
		values[i] = a.Int(int64(i))
	}
	return values
}

// ReadsNumbers reports whether the node's rules read the numbers of operand k, which no kernel has to compute then.
func (n *Node) ReadsNumbers(k int) bool { return n.read>>k&1 == 1 }

// KnownExtents returns operand k, which must be known, as a list of integers that may depend on open extents; what
// names it in errors.
func (n *Node) KnownExtents(k int, what string) []extent.Extent {
	if n.In[k].Numbers == nil {
		ints := n.KnownInts(k, what)
		return extent.Fixed(ints...).Extents()
	}
	n.read |= 1 << k
	list := make([]extent.Extent, len(n.In[k].Numbers))
	for i, x := range n.In[k].Numbers {
		if list[i] = x.Of; x.Over != 1 {
			n.fail("input %d (%s) is not a list of integers", k, what)
		}
	}
	return list
}

// ExtentsOr returns a list of integers, which may depend on open extents, that is operand k in newer versions of an
// operator and an attribute in older ones; nil if neither is given.
func (n *Node) ExtentsOr(k int, name string) []extent.Extent {
	if n.Has(k) {
		return n.KnownExtents(k, name)
	}
	if list := n.Ints(name, nil); list != nil {
		return extent.Fixed(list...).Extents()
	}
	return nil
}

// IntsOr returns a list of integers that is operand k in newer versions of an operator and an attribute in older
// ones; nil if neither is given.
func (n *Node) IntsOr(k int, name string) []int64 {
	if n.Has(k) {
		return n.KnownInts(k, name)
	}
	return n.Ints(name, nil)
}

// unequal returns the remedy, to append to an error, if two open extents are not known to be equal.
func unequal(a, b extent.Extent) string {
	if !a.IsOpen() && !b.IsOpen() {
		return ""
	}
	text := fmt.Sprintf(": %v and %v need not be equal", a, b)
	if dependsOnData(a) || dependsOnData(b) {
		return text
	}
	setting := "m=n"
	if s := b.Symbol(); s != nil {
		setting = s.Name + "=" + a.String()
	} else if s := a.Symbol(); s != nil {
		setting = s.Name + "=" + b.String()
	}
	return text + "; if they are, say so, as in --shape " + strings.ReplaceAll(setting, " ", "")
}

func dependsOnData(e extent.Extent) bool {
	depends := false
	e.Each(func(s *extent.Symbol) { depends = depends || s.Source != nil })
	return depends
}

// fixOpen returns a remedy, to append to an error, if extents that do not fit are open: others could.
func fixOpen(list ...extent.Extent) string {
	if extent.ShapeOf(list...).IsOpen() {
		return ", which is not known to fit: fix the extents by --shape"
	}
	return ""
}

// axis normalises an axis of a value of the given rank.
func (n *Node) axis(v int64, rank int) int {
	if v < 0 {
		v += int64(rank)
	}
	if v < 0 || v >= int64(rank) {
		n.fail("axis %d is outside a value of rank %d", v, rank)
		return 0
	}
	return int(v)
}

// axes normalises a list of axes to flags; a repeated axis fails.
func (n *Node) axes(list []int64, rank int) []bool {
	set := make([]bool, rank)
	for _, v := range list {
		k := n.axis(v, rank)
		if n.err != nil {
			return set
		}
		if set[k] {
			n.fail("axis %d is given twice", v)
		}
		set[k] = true
	}
	return set
}
