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
	var drafts []searchspace.Point
	if count := (n - len(list)) * draftsPerProposal; len(g.measured) >= 2 {
		litter := g.bred(g.measured, count)
		sortChildren(litter) // by the estimated latency
		drafts = points(litter)
	} else {
		drafts = g.space.Draws(g.rng, count)
		g.space.Sort(drafts) // by the analytic cost
	}
	return g.fillRandom(g.fill(list, n-blindly, drafts), n)
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
