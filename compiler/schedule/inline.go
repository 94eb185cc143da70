package schedule

import "github.com/tilth-dev/tilth/compiler/expr"

// inlining predicts the size of a body after a stage is inlined into it.
type inlining struct {
	g *Stage
	// fixed is the number of nodes in g's body other than axes, uses the number of occurrences of each axis.
	fixed int
	uses  map[*expr.Var]int
}

func newInlining(g *Stage) *inlining {
	n := &inlining{g: g, uses: map[*expr.Var]int{}}
	expr.Walk(g.Body, func(e expr.Expr) {
		if v, ok := e.(*expr.Var); ok {
			n.uses[v]++
		} else {
			n.fixed++
		}
	})
	return n
}

// size returns the size of e after inlining, or any number above maxBodyNodes.
func (n *inlining) size(e expr.Expr) int {
	l, isLoad := e.(*expr.Load)
	if !isLoad || l.Tensor != n.g.Tensor {
		total := 1
		expr.Children(e, func(c expr.Expr) {
			if total <= maxBodyNodes {
				total += n.size(c)
			}
		})
		return total
	}
	total := n.fixed
	for k, x := range l.Index {
		if total > maxBodyNodes {
			break
		}
		total += n.uses[n.g.Axes[k]] * min(n.size(x), maxBodyNodes+1)
	}
	return total
}
