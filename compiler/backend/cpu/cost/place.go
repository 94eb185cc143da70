package cost

// place determines what a statement computes at a time and how often, and then asks the statements inside it for what
// it reads. Consumers must be placed first.
func (a *Analysis) place(k int) {
	x := &a.Statements[k]
	copy(x.Nest.Axes, a.whole(x))
	x.Times, x.Filled = 1, 1
	if c := x.Consumer; c >= 0 {
		around := &a.Statements[c]
		x.Times, x.Filled = around.Times, around.Filled
		points := around.Nest.Overlap
		for _, e := range around.Nest.Axes[:len(around.Nest.Stage.Axes)] {
			points *= e
		}
		trips := 1.0
		x.at = around.Nest.last(x.Nest.Stage.Consumer.LeafIndex(x.Nest.Stage.At))
		for _, l := range around.Nest.loops[:x.at+1] {
			trips *= l.trips
		}
		copy(x.Nest.Axes, around.needs[x.at][k])
		inside := a.room.take(len(around.Nest.Axes))
		around.Nest.within(x.at+1, inside, &a.room)
		box := trips
		for _, e := range inside[:len(around.Nest.Stage.Axes)] {
			box *= e
		}
		x.Times *= trips
		x.Filled *= min(1, points/box)
	}
	x.Nest.fit(&a.room)
	x.Filled *= x.Nest.kept()
	a.ask(k)
}

// ask determines, for each loop of a statement's nest, what one iteration needs of the statements computed inside.
func (a *Analysis) ask(c int) {
	x := &a.Statements[c]
	deepest := -1
	for k := range a.Statements {
		if a.Statements[k].Consumer == c {
			g := a.Statements[k].Nest.Stage
			deepest = max(deepest, x.Nest.last(g.Consumer.LeafIndex(g.At)))
		}
	}
	for p := range deepest + 1 {
		within, box := a.room.take(len(x.Nest.Axes)), a.room.take(len(x.Nest.Axes))
		x.Nest.within(p+1, within, &a.room)
		x.Nest.box(p+1, box, &a.room)
		x.needs = append(x.needs, a.needed(c, within, box))
	}
}

// needed returns the part of each statement inside the nest of c that is read while its axes run over the given
// number of values, which lie in box. It is nil for statements outside.
func (a *Analysis) needed(c int, within, box []float64) [][]float64 {
	needs := make([][]float64, len(a.Statements))
	needs[c] = box
	for _, k := range a.order {
		reader := needs[k]
		if reader == nil {
			continue
		}
		for i := range a.Statements[k].Reads {
			r := &a.Statements[k].Reads[i]
			if r.Producer < 0 || !a.inside(r.Producer, c) {
				continue
			}
			if needs[r.Producer] == nil {
				needs[r.Producer] = a.min(r.Producer)
			}
			for d := range r.low {
				axes := reader
				if k == c && a.Statements[c].Nest.along(r.row(d)) {
					axes = within
				}
				needs[r.Producer][d] = max(needs[r.Producer][d], r.region(d, axes))
			}
		}
	}
	for k := range a.Statements {
		if needs[k] == nil && a.inside(k, c) {
			needs[k] = a.min(k)
		}
	}
	return needs
}

// min returns one element of a statement, with all terms of its reduction.
func (a *Analysis) min(k int) []float64 {
	g := a.Statements[k].Nest.Stage
	axes := a.room.take(len(g.Axes) + len(g.Reduce))
	for i := range axes {
		axes[i] = 1
		if i >= len(g.Axes) {
			axes[i] = float64(g.Reduce[i-len(g.Axes)].Extent)
		}
	}
	return axes
}

// inside reports whether a statement is computed in the nest of c, directly or through another statement.
func (a *Analysis) inside(k, c int) bool {
	for range a.Statements {
		if k = a.Statements[k].Consumer; k == c || k < 0 {
			break
		}
	}
	return k == c
}
