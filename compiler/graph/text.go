package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// text is the graph for people, a node a line: what it computes, from what, and what was decided of its result.
func (g *graph) text() string {
	var b strings.Builder
	for _, v := range g.inputs {
		fmt.Fprintf(&b, "input %s %s\n", v.label(), v.typeText())
	}
	kernels := map[*group]int{}
	for _, n := range g.nodes {
		fmt.Fprintf(&b, "%s %s = %s(%s)%s", n.out.label(), n.out.typeText(), n.Op, n.operandsText(), n.out.placeText())
		switch {
		case n.free:
			b.WriteString(", no kernel")
		case n.group != nil:
			if _, known := kernels[n.group]; !known {
				kernels[n.group] = len(kernels)
			}
			fmt.Fprintf(&b, ", kernel %d", kernels[n.group])
		}
		b.WriteByte('\n')
	}
	for _, v := range g.outputs {
		fmt.Fprintf(&b, "output %s\n", v.label())
	}
	return b.String()
}

// label is a value's name, quoted where it is no plain word, or its number.
func (v *value) label() string {
	switch {
	case v.name == "":
		return "%" + strconv.Itoa(v.id)
	case strings.ContainsFunc(v.name, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }):
		return strconv.Quote(v.name)
	}
	return v.name
}

func (v *value) typeText() string {
	return fmt.Sprintf("%v[%s]", v.DType, join(v.Shape))
}

func join[T any](list []T) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// operandsText lists a node's operands; constants with their types.
func (n *node) operandsText() string {
	list := make([]string, len(n.in))
	for k, v := range n.in {
		switch {
		case v == nil:
			list[k] = "-"
		case v.Const != nil:
			list[k] = "constant " + v.label() + " " + v.typeText()
		default:
			list[k] = v.label()
		}
	}
	return strings.Join(list, ", ")
}

// placeText says how a value's elements lie, where that was decided and is not the order of its axes in memory of its
// own.
func (v *value) placeText() (text string) {
	for k, axis := range v.layout {
		if axis != k {
			text = ", axes in memory " + join(v.layout)
			break
		}
	}
	switch {
	case v.within == nil:
	case v.within.begin == nil:
		text += ", the elements of " + v.within.of.label()
	default:
		text += ", in " + v.within.of.label() + " at " + join(v.within.begin)
	}
	return text
}
