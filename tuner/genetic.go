package tuner

import "github.com/tilth-dev/tilth/compiler/searchspace"

// genetic evolves the best points measured so far. It starts with the default schedule and the hand-written
// tiles, then draws points with a low analytic cost, and then breeds: parents come from the fastest trials,
// children from mutation and crossover. The children with the lowest analytic cost are proposed, together
// with some random ones for diversity.
type genetic struct {
	*pool
	measured []measured
	seeds    []searchspace.Point
}

const (
	// draftsPerProposal is the number of children drafted per proposal.
	draftsPerProposal = 6
	// seeded is the number of a task's first trials that begin with its hand-written points.
	seeded = 16
	// blind is the number of candidates, in a batch of sixteen, that are drawn regardless of the cost.
	blind = 2
)

func newGenetic(p *pool, o Options) *genetic {
	g := &genetic{pool: p}
	if !o.NoSeeds {
		g.seeds = p.space.Seeds()
	}
	return g
}

// Propose implements Search.
func (g *genetic) Propose(n int) []Candidate {
	g.reseed()
	early := len(g.seen) < seeded
	list := g.start(n)
	if early {
		list = g.fill(list, n*3/4, g.seeds)
	}
	blindly := (n*blind + 15) / 16
	if len(g.measured) >= 2 {
		list = g.fill(list, n-blindly, g.children((n-len(list))*draftsPerProposal))
	} else {
		list = g.fill(list, n-blindly, g.draft((n-len(list))*draftsPerProposal))
	}
	return g.fillRandom(list, n)
}

// draft draws points and orders them by the analytic cost.
func (g *genetic) draft(n int) []searchspace.Point {
	points := g.space.Draws(g.rng, n)
	g.space.Sort(points)
	return points
}

// children returns the children of n matings, lowest estimated latency first.
func (g *genetic) children(n int) []searchspace.Point {
	litter := g.bred(g.measured, n)
	sortChildren(litter)
	return points(litter)
}

// Observe implements Search.
func (g *genetic) Observe(t Trial) {
	g.observe(t)
	if t.LatencySeconds <= 0 {
		return
	}
	point, ok := g.space.Parse(t.Origin)
	if !ok {
		return
	}
	g.measured = insert(g.measured, measured{point, t.LatencySeconds, t.Digest})
}
