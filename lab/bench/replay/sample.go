package replay

import (
	"math/rand/v2"
	"strconv"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

const (
	// drafted is the number of random points from which drafting picks the one of least analytic cost.
	drafted = 8
	// ancestors is the number of seeds with descendants, besides the default schedules. generations is the maximum
	// number of mutations.
	ancestors, generations = 12, 3
	// idleDraws is the number of consecutive duplicates after which the space counts as exhausted.
	idleDraws = 200
)

// drawSample draws up to n distinct legal schedules of a whole space. It starts with the default schedules. Half of
// the rest is random, a quarter drafted, and a quarter mutated from the defaults and seeds, as in searches. The choice
// is deterministic, and a smaller n gives a prefix.
func drawSample(s *searchspace.Space, n int) []Candidate {
	d := &sampler{space: s, rng: rand.New(rand.NewPCG(seedOf(s), 7)), seen: map[string]bool{}}
	d.parents = s.Defaults()
	for _, p := range d.parents {
		d.take(p)
	}
	seeds := s.Seeds()
	d.parents = append(d.parents, seeds[:min(ancestors, len(seeds))]...)
	for turn, idle := 0, 0; len(d.list) < n && idle < idleDraws; turn++ {
		p, ok := d.draw(turn % 4)
		if idle++; ok && d.take(p) {
			idle = 0
		}
	}
	return d.list[:min(n, len(d.list))]
}

// seedOf depends on the workload, so that workloads with the same knobs get different samples.
func seedOf(s *searchspace.Space) uint64 {
	seed, err := strconv.ParseUint(s.Workload.Digest()[:16], 16, 64)
	if err != nil {
		return 1 // unreachable: digests are hexadecimal
	}
	return seed
}

type sampler struct {
	space   *searchspace.Space
	rng     *rand.Rand
	parents []searchspace.Point
	seen    map[string]bool // by digest
	list    []Candidate
}

// take adds the schedule of a point and reports whether it is new and legal.
func (d *sampler) take(p searchspace.Point) bool {
	c, ok := candidateOf(d.space, p)
	if !ok || d.seen[c.Digest] {
		return false
	}
	d.seen[c.Digest] = true
	d.list = append(d.list, c)
	return true
}

// draw returns a point by one of four methods in turn.
func (d *sampler) draw(turn int) (searchspace.Point, bool) {
	switch turn {
	case 1:
		return d.draft()
	case 3:
		return d.descendant()
	}
	return d.space.Random(d.rng)
}

func (d *sampler) draft() (searchspace.Point, bool) {
	var points []searchspace.Point
	for range drafted {
		if p, ok := d.space.Random(d.rng); ok {
			points = append(points, p)
		}
	}
	if len(points) == 0 {
		return nil, false
	}
	d.space.Sort(points)
	return points[0], true
}

func (d *sampler) descendant() (searchspace.Point, bool) {
	p, ok := d.parents[d.rng.IntN(len(d.parents))], true
	for n := 1 + d.rng.IntN(generations); n > 0 && ok; n-- {
		p, ok = d.space.Mutate(d.rng, p)
	}
	return p, ok
}
