package schedule

import "github.com/tilth-dev/tilth/compiler/expr"

// inlining foresees how large a body becomes when a stage is inlined into it.
type inlining struct {
	g *Stage
	// fixed is the number of nodes of g's body that are no axis, uses how often each axis occurs.
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

// size is that of e afterwards, or any number above maxBodyNodes.
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
