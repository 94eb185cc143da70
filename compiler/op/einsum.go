package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var einsumDefs = []Def{{
	Name: "Einsum", Kind: Reduction, MinIn: 1, MaxIn: -1, Label: "einsum",
	Infer: inferEinsum, Lower: lowerEinsum, Layout: rowMajorResult, Work: einsumWork,
	Detail: func(n *Node) string { return strings.ReplaceAll(n.Text("equation", ""), " ", "") },
}}

// subscripts is an Einsum's equation: axis labels for each operand and the result. Axes of an ellipsis have the
// labels '0', '1', ... counted from the last, so that they broadcast as in numpy.
type subscripts struct {
	operands [][]rune
	result   []rune
	extents  map[rune]extent.Extent
}

func parseSubscripts(n *Node) (*subscripts, error) {
	text := strings.ReplaceAll(n.Text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(text, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(n.In) {
		return nil, fmt.Errorf("equation %q has %d terms for %d operands", text, len(terms), len(n.In))
	}
	s := &subscripts{extents: map[rune]extent.Extent{}}
	widest := 0
	for k, term := range terms {
		shape := n.In[k].Shape
		labels, dots, err := expandLabels(term, shape.Rank(), -1)
		if err != nil {
			return nil, fmt.Errorf("equation %q, operand %d of shape %v: %w", text, k, shape, err)
		}
		widest = max(widest, dots)
		for axis, label := range labels {
			if err := s.setExtent(label, shape.At(axis)); err != nil {
				return nil, fmt.Errorf("equation %q: %w", text, err)
			}
		}
		s.operands = append(s.operands, labels)
	}
	if !explicit {
		s.result = s.implicitResult(widest)
		return s, nil
	}
	var err error
	if s.result, _, err = expandLabels(right, -1, widest); err != nil {
		return nil, fmt.Errorf("equation %q, result: %w", text, err)
	}
	for k, label := range s.result {
		if _, known := s.extents[label]; !known || slices.Contains(s.result[:k], label) {
			return nil, fmt.Errorf("equation %q: label %q of the result is in no operand, or twice", text, label)
		}
	}
	return s, nil
}

// expandLabels returns the label of each axis of a term. The ellipsis stands for the axes missing from rank, or for
// dots axes.
func expandLabels(term string, rank, dots int) ([]rune, int, error) {
	before, after, ellipsis := strings.Cut(term, "...")
	for _, label := range before + after {
		if !(label >= 'a' && label <= 'z' || label >= 'A' && label <= 'Z') {
			return nil, 0, fmt.Errorf("%q is not a label", label)
		}
	}
	switch {
	case !ellipsis && rank >= 0 && len(before) != rank, ellipsis && rank >= 0 && len(before)+len(after) > rank:
		return nil, 0, fmt.Errorf("term %q does not fit", term)
	case !ellipsis:
		dots = 0
	case rank >= 0:
		dots = rank - len(before) - len(after)
	}
	labels := []rune(before)
	for k := dots - 1; k >= 0; k-- {
		labels = append(labels, dotLabel(k))
	}
	return append(labels, []rune(after)...), dots, nil
}

// dotLabel returns the label of the k-th last axis of an ellipsis.
func dotLabel(k int) rune { return rune('0' - 1 - k) }

func isDotLabel(label rune) bool { return label < '0' }

// setExtent checks that extents of a label agree; those of an ellipsis may also be 1.
func (s *subscripts) setExtent(label rune, size extent.Extent) error {
	known, seen := s.extents[label]
	switch {
	case !seen, known.Is(1) && isDotLabel(label):
		s.extents[label] = size
	case known != size && !(size.Is(1) && isDotLabel(label)):
		return fmt.Errorf("label %q has the extents %v and %v%s", label, known, size, fixOpen(known, size))
	}
	return nil
}

// implicitResult returns the axes of the ellipsis, then the labels that occur once, in alphabetical order.
func (s *subscripts) implicitResult(dots int) []rune {
	var result []rune
	for k := dots - 1; k >= 0; k-- {
		result = append(result, dotLabel(k))
	}
	count := map[rune]int{}
	for _, labels := range s.operands {
		for _, label := range labels {
			count[label]++
		}
	}
	var once []rune
	for label, times := range count {
		if times == 1 && !isDotLabel(label) {
			once = append(once, label)
		}
	}
	slices.Sort(once)
	return append(result, once...)
}

func (s *subscripts) shape(labels []rune) extent.Shape {
	shape := make([]extent.Extent, len(labels))
	for k, label := range labels {
		shape[k] = s.extents[label]
	}
	return extent.ShapeOf(shape...)
}

func inferEinsum(n *Node) (Type, error) {
	d := Get(numbers(n))
	s := Get(parseSubscripts(n))
	return Type{d, s.shape(s.result)}, nil
}

// labelled is an operand, or a product of some, with axis labels.
type labelled struct {
	Operand
	labels []rune
}

// lowerEinsum multiplies operands pairwise from left to right, and sums over each label as soon as no remaining
// operand uses it. The scheduler sees a product of two as a matrix product.
func lowerEinsum(l *Lowering, n *Node, in []Operand) Operand {
	s := Get(parseSubscripts(n))
	acc := labelled{l.matrix(in[0]), s.operands[0]}
	for k := 1; k < len(in); k++ {
		labels := s.result
		if k < len(in)-1 {
			labels = s.kept(acc.labels, k)
		}
		acc = s.contract(l, labels, acc, labelled{l.matrix(in[k]), s.operands[k]})
	}
	if len(in) == 1 {
		acc = s.contract(l, s.result, acc)
	}
	return narrow(l, n, acc.Operand)
}

// kept returns the labels of a product with operand k that the result or a later operand uses.
func (s *subscripts) kept(labels []rune, k int) []rune {
	var kept []rune
	for _, label := range slices.Concat(labels, s.operands[k]) {
		needed := slices.Contains(s.result, label)
		for _, later := range s.operands[k+1:] {
			needed = needed || slices.Contains(later, label)
		}
		if needed && !slices.Contains(kept, label) {
			kept = append(kept, label)
		}
	}
	return kept
}

// contract returns the product of factors with the given labels, summed over all others.
func (s *subscripts) contract(l *Lowering, labels []rune, factors ...labelled) labelled {
	var summed []rune
	for _, f := range factors {
		for _, label := range f.labels {
			if !slices.Contains(labels, label) && !slices.Contains(summed, label) {
				summed = append(summed, label)
			}
		}
	}
	product := func(i, r []expr.Expr) expr.Expr {
		index := map[rune]expr.Expr{}
		for k, label := range labels {
			index[label] = i[k]
		}
		for k, label := range summed {
			index[label] = r[k]
		}
		var e expr.Expr
		for _, f := range factors {
			at := make([]expr.Expr, len(f.labels))
			for k, label := range f.labels {
				at[k] = index[label]
				if f.Shape.At(k).Is(1) && !s.extents[label].Is(1) {
					at[k] = expr.I(0)
				}
			}
			x := wide(f.At(at...))
			if e == nil {
				e = x
			} else {
				e = expr.MulE(e, x)
			}
		}
		return e
	}
	shape := s.shape(labels)
	if len(summed) == 0 {
		return labelled{l.Map("einsum", shape, RowMajor(shape.Rank()), func(i []expr.Expr) expr.Expr { return product(i, nil) }), labels}
	}
	return labelled{l.Reduce("einsum", expr.Sum, shape, RowMajor(shape.Rank()), s.shape(summed), product), labels}
}

// einsumWork returns the work of the products in the order of lowerEinsum.
func einsumWork(n *Node) float64 {
	s := Get(parseSubscripts(n))
	work, labels := 0.0, s.operands[0]
	for k := 1; k < len(s.operands); k++ {
		all := slices.Concat(labels, s.operands[k])
		slices.Sort(all)
		work += 2 * float64(array.Elements(s.shape(slices.Compact(all)).Max()))
		labels = s.kept(labels, k)
	}
	return max(work, firstOperandWork(n))
}
