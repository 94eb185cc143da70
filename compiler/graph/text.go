package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Text returns a readable form of the graph, one node per line: operator, operands, and the decisions about its
// result.
func (g *Graph) Text() string {
	var b strings.Builder
	for _, v := range g.Inputs {
		fmt.Fprintf(&b, "input %s %s\n", v.label(), v.typeText())
	}
	kernels := map[*Kernel]int{}
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%s %s = %s(%s)%s", n.Result.label(), n.Result.typeText(), n.Op, n.operandsText(), n.Result.placeText())
		switch {
		case n.Free:
			b.WriteString(", no kernel")
		case n.Kernel != nil:
			if _, known := kernels[n.Kernel]; !known {
				kernels[n.Kernel] = len(kernels)
			}
			fmt.Fprintf(&b, ", kernel %d", kernels[n.Kernel])
		}
		b.WriteByte('\n')
	}
	for _, v := range g.Outputs {
		fmt.Fprintf(&b, "output %s\n", v.label())
	}
	return b.String()
}

// label returns a value's name, quoted unless it is a plain word, or its number.
func (v *Value) label() string {
	switch {
	case v.Name == "":
		return "%" + strconv.Itoa(v.ID)
	case strings.ContainsFunc(v.Name, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }):
		return strconv.Quote(v.Name)
	}
	return v.Name
}

func (v *Value) typeText() string {
	list := make([]string, v.Shape.Rank())
	for k, e := range v.Shape.Extents() {
		list[k] = e.String()
	}
	return fmt.Sprintf("%v[%s]", v.DType, strings.Join(list, ","))
}

func join[T any](list []T) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// operandsText lists a node's operands; constants with their types.
func (n *Node) operandsText() string {
	list := make([]string, len(n.Operands))
	for k, v := range n.Operands {
		switch {
		case v == nil:
			list[k] = "-"
		case v.Const != nil:
			list[k] = "constant " + v.label() + " " + v.typeText()
			if v.Stored != array.Invalid {
				list[k] += " stored as " + v.Stored.String()
			}
		default:
			list[k] = v.label()
		}
	}
	return strings.Join(list, ", ")
}

// placeText describes a value's layout and place, if these were decided and differ from separate row-major memory.
func (v *Value) placeText() (text string) {
	for k, axis := range v.Layout {
		if axis != k {
			text = ", axes in memory " + join(v.Layout)
			break
		}
	}
	if v.Stored != array.Invalid {
		text += ", stored as " + v.Stored.String()
	}
	switch {
	case v.Within == nil:
	case v.Within.Begin == nil:
		text += ", the elements of " + v.Within.Of.label()
	default:
		text += ", in " + v.Within.Of.label() + " at " + join(v.Within.Begin)
	}
	return text
}
