package tuner

import "github.com/tilth-dev/tilth/compiler/searchspace"

// grid visits every legal point in the order of the knobs; the last knob changes fastest.
type grid struct {
	*pool
	next searchspace.Point
	done bool
}

// gridSteps bounds the points evaluated in one call. The search ends after this many without a new legal one.
const gridSteps = 200_000

// Propose implements Search.
func (g *grid) Propose(n int) []Candidate {
	list := g.start(n)
	for range gridSteps {
		if len(list) >= n || g.done {
			break
		}
		if g.next == nil {
			g.next = make(searchspace.Point, len(g.space.Knobs))
		}
		if c, ok := g.take(g.next); ok {
			list = append(list, c)
		}
		next, ok := g.space.Next(g.next)
		g.next, g.done = next, !ok
	}
	return list
}

// Observe implements Search.
func (g *grid) Observe(t Trial) { g.observe(t) }
