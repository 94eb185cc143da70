package cost

// Statement is a stage and its nest, at the place where it is computed.
type Statement struct {
	Nest Nest
	// Operations are those of one iteration.
	Operations Operations
	// Reads are what the body loads, an access for all loads that differ by constants; Result is what it stores.
	Reads  []Access
	Result Access
	// Consumer is the number of the statement in whose nest this one is computed, in the loop of number at; -1 when on
	// its own.
	Consumer int
	at       int
	// Times is how often the nest runs, Filled what part of its iterations these have on average: less than 1 where
	// last tiles are partial, or padding is left out.
	Times, Filled float64
	// needs has, for the loops of this nest, what one iteration of each asks of the statements inside, by number; nil
	// for none.
	needs [][][]float64
	// Tile is the microkernel, Traffic what comes into each store, Cycles what both take in the whole kernel.
	Tile    Tile
	Traffic Traffic
	Cycles  Cycles
}

// Iterations is how many values the statement computes, terms of reductions each, in the whole kernel.
func (x *Statement) Iterations() float64 {
	n := x.Times * x.Filled * x.Nest.Overlap
	for _, e := range x.Nest.Axes {
		n *= e
	}
	return n
}

// Useful is the iterations that the result takes.
func (x *Statement) Useful() float64 {
	g, n := x.Nest.Stage, 1.0
	for k := range len(g.Axes) + len(g.Reduce) {
		n *= float64(g.AxisVar(k).Extent)
	}
	return n
}

// Terms is how many terms a result of the statement has.
func (x *Statement) Terms() float64 { return product(x.Nest.Axes[len(x.Nest.Stage.Axes):]) }
