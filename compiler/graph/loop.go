package graph

import (
	"maps"
	"slices"

	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/op"
)

// Loop is a part of the graph that executions run several times: the nodes that depend on its states or its counter.
// Nodes that begin and end it hold what enters and leaves it.
type Loop struct {
	// Name is that of the model's node.
	Name string
	// Counter is a scalar of type i64 that holds the number of the iteration, from 0 on.
	Counter *Value
	// Count is the number of iterations. While is set if state 0 decides whether an iteration runs.
	Count extent.Extent
	While bool
	// Control lists the nodes that begin and end it, by states. Nodes that end a loop without being read remain in the
	// list.
	Control []*Node
}

// LoopOf returns the loop whose counter a symbol is; nil for other symbols.
func LoopOf(s *extent.Symbol) *Loop {
	if v, ok := s.Source.(*Value); ok {
		return v.CounterOf
	}
	return nil
}

// Control describes a node that begins or ends a loop.
type Control struct {
	Loop *Loop
	// State is the number of the state.
	State int
	// At is the element on axis 0 of a stacked result that an iteration computes.
	At extent.Extent
}

// Iterations returns the number of iterations, an i64 with one element.
func (l *Loop) Iterations() *Value { return l.Control[0].Operands[1] }

// States returns the values of the states in an iteration.
func (l *Loop) States() (states []*Value) {
	for _, n := range l.Control {
		if n.Op == op.LoopState {
			states = append(states, n.Result)
		}
	}
	return states
}

// Next returns the next values of the states.
func (l *Loop) Next() []*Value { return l.Control[len(l.Control)-1].Operands[2:] }

// carries reports whether a value is one of a state before, or after an iteration.
func (l *Loop) carries(v *Value) bool {
	for _, n := range l.Control {
		if n.Op == op.LoopState && n.Operands[0] == v {
			return true
		}
	}
	return slices.Contains(l.Next(), v)
}

// SetNext replaces the next value of a state.
func (l *Loop) SetNext(state int, v *Value) {
	for _, n := range l.Control {
		if n.Op == op.LoopState {
			continue
		}
		if n.Op == op.LoopEnd && n.Control.State == state {
			n.Operands[0], n.In[0] = v, v.Value
		}
		n.Operands[2+state], n.In[2+state] = v, v.Value
	}
}

// FirstEnd returns the position in the graph of the first node that ends the loop.
func (g *Graph) FirstEnd(l *Loop) int {
	return slices.IndexFunc(g.Nodes, func(n *Node) bool {
		return n.Control != nil && n.Control.Loop == l && n.Op != op.LoopState
	})
}

// GroupLoops sets the loops around each node, makes the nodes of each loop neighbours, and moves others out of it.
func (g *Graph) GroupLoops() {
	g.findLoops()
	for _, l := range g.Loops {
		in := func(n *Node) bool { return slices.Contains(n.Loops, l) || n.Control != nil && n.Control.Loop == l }
		first := slices.IndexFunc(g.Nodes, in)
		if first < 0 {
			continue
		}
		last := len(g.Nodes)
		for !in(g.Nodes[last-1]) {
			last--
		}
		var outside, inside []*Node
		for _, n := range g.Nodes[first:last] {
			if in(n) {
				inside = append(inside, n)
			} else {
				outside = append(outside, n)
			}
		}
		copy(g.Nodes[first:last], append(outside, inside...))
	}
	g.Number()
}

// findLoops sets the loops that each node depends on. All nodes of a loop are in the loops that one of them is in.
// Nodes that begin or end a loop are around it, not in it.
func (g *Graph) findLoops() {
	number := map[*Loop]int{}
	for k, l := range g.Loops {
		number[l] = k
	}
	outer := map[*Loop][]*Loop{}
	for changed := len(g.Loops) > 0; changed; {
		changed = false
		of := map[*Value]map[*Loop]bool{}
		for _, n := range g.Nodes {
			in := map[*Loop]bool{}
			add := func(l *Loop) {
				in[l] = true
				for _, o := range outer[l] {
					in[o] = true
				}
			}
			for _, v := range n.Operands {
				for l := range of[v] {
					add(l)
				}
			}
			for _, v := range n.Counts() {
				if v.CounterOf != nil {
					add(v.CounterOf)
				}
				for l := range of[v] {
					add(l)
				}
			}
			result := in
			if n.Control != nil {
				delete(in, n.Control.Loop)
				if n.Op == op.LoopState {
					result = maps.Clone(in)
					result[n.Control.Loop] = true
				}
			}
			of[n.Result] = result
			list := slices.SortedFunc(maps.Keys(in), func(a, b *Loop) int { return number[a] - number[b] })
			n.Loops = list
			if n.Control != nil {
				list = append(slices.Clone(list), n.Control.Loop)
			}
			for k, l := range list {
				for _, o := range list[:k] {
					if !slices.Contains(outer[l], o) {
						outer[l], changed = append(outer[l], o), true
					}
				}
			}
		}
	}
}
