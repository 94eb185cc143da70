package expr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// textHeader starts every canonical text; its number changes with the meaning of texts.
const textHeader = "tilth-workload 1"

// Text returns the canonical form, which Parse parses: one line per tensor, tensors named t0, t1, ... in the order
// inputs, constants, stages; axes i0, i1, ... and r0, r1, ...; bodies in prefix form. For example
//
//	tilth-workload 1
//	input t0 f32[4,8]
//	constant t1 f32[8,16]
//	sum t2 f32[4,16] over 8 = (mul [t0 i0 r0] [t1 r0 i1])
//	output t2
//
// The type of an input or output that is part of a larger tensor ends with its strides, f32[4,8]@[24,1]. Limits of
// open axes precede the body, each after its axis: " while i0 [t0], r0 (mul [t0] 2) = ".
func (w *Workload) Text() string {
	names := map[*Tensor]string{}
	var b strings.Builder
	b.WriteString(textHeader + "\n")
	declare := func(t *Tensor) {
		names[t] = "t" + strconv.Itoa(len(names))
	}
	for _, t := range w.Inputs {
		declare(t)
		fmt.Fprintf(&b, "input %s %s\n", names[t], typeText(t))
	}
	for _, t := range w.Constants {
		declare(t)
		fmt.Fprintf(&b, "constant %s %s\n", names[t], typeText(t))
	}
	for _, t := range w.Stages {
		declare(t)
		w.stageText(&b, t, names)
	}
	b.WriteString("output")
	for _, t := range w.Outputs {
		b.WriteString(" " + names[t])
	}
	b.WriteString("\n")
	return b.String()
}

func (w *Workload) stageText(b *strings.Builder, t *Tensor, names map[*Tensor]string) {
	fmt.Fprintf(b, "%v %s %s", t.Combiner, names[t], typeText(t))
	vars := map[*Var]string{}
	for k, v := range t.Axes {
		vars[v] = "i" + strconv.Itoa(k)
	}
	for k, v := range t.Reduce {
		vars[v] = "r" + strconv.Itoa(k)
		if k == 0 {
			b.WriteString(" over ")
		} else {
			b.WriteString(",")
		}
		b.WriteString(strconv.FormatInt(v.Extent, 10))
	}
	limits := " while "
	for _, v := range t.variables() {
		if v.Limit != nil {
			b.WriteString(limits + vars[v] + " ")
			writeExpr(b, v.Limit, names, nil)
			limits = ", "
		}
	}
	b.WriteString(" = ")
	writeExpr(b, t.Body, names, vars)
	b.WriteString("\n")
}

// typeText returns for example f32[4,8], f32[4,8]@[24,1] for a part of a larger tensor, i64[]<=512 for a count, and
// i64[]<=5,23,108,512 for one with points.
func typeText(t *Tensor) string {
	text := t.DType.String() + shapeText(t.Shape)
	if t.Strides != nil {
		text += "@" + shapeText(t.Strides)
	}
	switch {
	case t.Points != nil:
		text += "<=" + strings.Trim(shapeText(t.Points), "[]")
	case t.Max > 0:
		text += "<=" + strconv.FormatInt(t.Max, 10)
	}
	return text
}

func shapeText(shape []int64) string {
	parts := make([]string, len(shape))
	for k, e := range shape {
		parts[k] = strconv.FormatInt(e, 10)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func writeExpr(b *strings.Builder, e Expr, names map[*Tensor]string, vars map[*Var]string) {
	group := func(head, tail string, operands ...Expr) {
		b.WriteString(head)
		for _, x := range operands {
			b.WriteByte(' ')
			writeExpr(b, x, names, vars)
		}
		b.WriteString(tail)
	}
	switch n := e.(type) {
	case *Var:
		b.WriteString(vars[n])
	case *Int:
		b.WriteString(strconv.FormatInt(n.Value, 10))
		if n.Type != array.Int64 {
			b.WriteString(":" + n.Type.String())
		}
	case *Float:
		b.WriteString(strconv.FormatFloat(n.Value, 'x', -1, 64) + ":" + n.Type.String())
	case *Load:
		group("["+names[n.Tensor], "]", n.Index...)
	case *Binary:
		group("("+n.Op.String(), ")", n.A, n.B)
	case *Unary:
		group("("+n.Op.String(), ")", n.A)
	case *Select:
		group("(select", ")", n.Cond, n.A, n.B)
	case *Cast:
		group("(cast "+n.Type.String(), ")", n.A)
	}
}
