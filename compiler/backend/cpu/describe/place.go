package describe

// place settles what a statement computes at a time and how often, and asks the statements inside of it for what it
// reads. Consumers are placed first.
func (a *analysis) place(k int) {
	x := &a.statements[k]
	g := x.nest.stage
	for i := range x.nest.axes {
		x.nest.axes[i] = float64(g.AxisVar(i).Extent)
	}
	x.times, x.filled = 1, 1
	if c := x.consumer; c >= 0 {
		around := &a.statements[c]
		x.times, x.filled = around.times, around.filled
		points := around.nest.overlap
		for _, e := range around.nest.axes[:len(around.nest.stage.Axes)] {
			points *= e
		}
		trips := 1.0
		x.at = around.nest.last(x.nest.stage.Consumer.LeafIndex(x.nest.stage.At))
		for _, l := range around.nest.loops[:x.at+1] {
			trips *= l.trips
		}
		copy(x.nest.axes, around.needs[x.at][k])
		inside := a.room.take(len(around.nest.axes))
		around.nest.within(x.at+1, inside, &a.room)
		box := trips
		for _, e := range inside[:len(around.nest.stage.Axes)] {
			box *= e
		}
		x.times *= trips
		x.filled *= min(1, points/box)
	}
	x.nest.fit(&a.room)
	a.ask(k)
}

// ask finds out, for each loop of a statement's nest, what an iteration of it needs of the statements that are
// computed inside.
func (a *analysis) ask(c int) {
	x := &a.statements[c]
	deepest := -1
	for k := range a.statements {
		if a.statements[k].consumer == c {
			g := a.statements[k].nest.stage
			deepest = max(deepest, x.nest.last(g.Consumer.LeafIndex(g.At)))
		}
	}
	for p := range deepest + 1 {
		within := a.room.take(len(x.nest.axes))
		x.nest.box(p+1, within, &a.room)
		x.needs = append(x.needs, a.needed(c, within))
	}
}

// needed is what part of each statement inside the nest of c is read while its axes run over so many values; nil for
// those outside.
func (a *analysis) needed(c int, within []float64) [][]float64 {
	needs := make([][]float64, len(a.statements))
	needs[c] = within
	for _, k := range a.order {
		reader := needs[k]
		if reader == nil {
			continue
		}
		for i := range a.statements[k].reads {
			r := &a.statements[k].reads[i]
			if r.producer < 0 || !a.inside(r.producer, c) {
				continue
			}
			if needs[r.producer] == nil {
				needs[r.producer] = a.least(r.producer)
			}
			for d := range r.low {
				needs[r.producer][d] = max(needs[r.producer][d], r.reach(d, reader))
			}
		}
	}
	for k := range a.statements {
		if needs[k] == nil && a.inside(k, c) {
			needs[k] = a.least(k)
		}
	}
	return needs
}

// least is one element of a statement, with all terms of its reduction.
func (a *analysis) least(k int) []float64 {
	g := a.statements[k].nest.stage
	axes := a.room.take(len(g.Axes) + len(g.Reduce))
	for i := range axes {
		axes[i] = 1
		if i >= len(g.Axes) {
			axes[i] = float64(g.Reduce[i-len(g.Axes)].Extent)
		}
	}
	return axes
}

// inside reports whether a statement is computed in the nest of c, or in that of one that is.
func (a *analysis) inside(k, c int) bool {
	for range a.statements {
		if k = a.statements[k].consumer; k == c || k < 0 {
			break
		}
	}
	return k == c
}
