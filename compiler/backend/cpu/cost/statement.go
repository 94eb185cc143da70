package cost

// Statement is a stage and its nest, where it is computed.
type Statement struct {
	Nest Nest
	// Operations counts those of one iteration.
	Operations Operations
	// Reads holds the loads of the body, with loads that differ only in constants merged; Result is the store.
	Reads  []Access
	Result Access
	// Consumer is the number of the statement whose nest computes this one, inside loop at; -1 for a nest of its own.
	Consumer int
	at       int
	// Times is how often the nest runs, Filled the average fraction of its iterations that do: less than 1 if last
	// tiles are partial or padding is omitted.
	Times, Filled float64
	// needs holds, per loop of this nest and statement number, what one iteration requires of the statements inside.
	// Other statements have nil.
	needs [][][]float64
	// Tile is the microkernel, Traffic the fills of each cache, and Cycles the cost of both in the whole kernel.
	Tile    Tile
	Traffic Traffic
	Cycles  Cycles
}

// Iterations returns how many values, counting each term of reductions, the statement computes in the whole kernel.
func (x *Statement) Iterations() float64 {
	n := x.Times * x.Filled * x.Nest.Overlap
	for _, e := range x.Nest.Axes {
		n *= e
	}
	return n
}

// Useful returns the iterations that the result requires.
func (x *Statement) Useful() float64 {
	g, n := x.Nest.Stage, 1.0
	for k := range len(g.Axes) + len(g.Reduce) {
		n *= float64(g.AxisVar(k).Extent)
	}
	return n
}

// Terms returns how many terms a result of the statement has.
func (x *Statement) Terms() float64 { return product(x.Nest.Axes[len(x.Nest.Stage.Axes):]) }

// Operations counts operations by kind.
type Operations struct {
	MultiplyAdds, Adds, Divides, Transcendentals, Integers, Selects, Casts, Guards float64
}

func (c *Operations) add(o Operations, times float64) {
	c.MultiplyAdds += o.MultiplyAdds * times
	c.Adds += o.Adds * times
	c.Divides += o.Divides * times
	c.Transcendentals += o.Transcendentals * times
	c.Integers += o.Integers * times
	c.Selects += o.Selects * times
	c.Casts += o.Casts * times
	c.Guards += o.Guards * times
}

// Slots returns how many cycles of one arithmetic port the operations take on vectors. A division occupies it for
// several cycles. A transcendental function is a polynomial of about twenty steps.
func (c *Operations) Slots() float64 {
	return c.MultiplyAdds + c.Adds + 8*c.Divides + 20*c.Transcendentals + c.Integers + c.Selects + c.Casts
}
