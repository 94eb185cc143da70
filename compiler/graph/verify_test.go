package graph

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/op"
)

// twice returns a graph of two nodes, y = -(-x).
func twice(t *testing.T) *Graph {
	x := op.Type{DType: array.Float32, Shape: extent.Fixed(2)}
	g := &Graph{}
	v := g.NewValue("x", x)
	g.Inputs = []*Value{v}
	for _, name := range []string{"a", "b"} {
		n, err := g.Apply(op.Node{Name: name, Op: op.Neg, Opset: 13}, name+".out", v)
		if err != nil {
			t.Fatal(err)
		}
		g.Nodes, v = append(g.Nodes, n), n.Result
	}
	g.Outputs = []*Value{v}
	g.Number()
	return g
}

func TestVerifySaysWhatIsWrongWithAGraph(t *testing.T) {
	if err := twice(t).Verify(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		damage func(g *Graph)
		want   string
	}{
		{"nodes in the wrong order", func(g *Graph) { g.Nodes[0], g.Nodes[1] = g.Nodes[1], g.Nodes[0]; g.Number() }, `node "b" reads a.out before it is computed`},
		{"nodes without numbers", func(g *Graph) { g.Nodes[1].Order = 0 }, `node "b" is number 1, and says 0`},
		{"an operand too many", func(g *Graph) { g.Nodes[1].Operands = append(g.Nodes[1].Operands, nil) }, `node "b" has 2 operands, and types of 1`},
		{"another type", func(g *Graph) { g.Nodes[1].In[0].DType = array.Int8 }, `node "b" takes a.out for i8[2]`},
		{"a result of two nodes", func(g *Graph) { g.Nodes[1].Result = g.Nodes[0].Result }, `the result a.out of node "b" is another's`},
		{"an output of no node", func(g *Graph) { g.Nodes = g.Nodes[:1] }, "output b.out is computed by no node"},
	} {
		g := twice(t)
		c.damage(g)
		if err := g.Verify(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
