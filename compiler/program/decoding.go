package program

// Decoding describes successive executions of a program whose outputs continue inputs, such as a decoder's keys and
// values: each execution adds Step positions to the Past before it. Both are indices in Extents.
type Decoding struct{ Past, Step int }

// Decoding describes the successive executions of the program. ok is false if no output continues an input, if two do
// so by different extents, or if these have steps.
func (p *Program) Decoding() (d Decoding, ok bool) {
	for k, output := range p.Outputs {
		in := p.Continues(k)
		if in < 0 {
			continue
		}
		one, is := p.decoding(p.Inputs[in], output)
		if !is || ok && one != d || p.Extents[one.Past].Step > 1 || p.Extents[one.Step].Step > 1 {
			return Decoding{}, false
		}
		d, ok = one, true
	}
	return d, ok
}

// decoding is Decoding for one output that continues an input: on one axis it has past and step elements where the
// input has past, and the other axes are equal.
func (p *Program) decoding(in, output int) (d Decoding, ok bool) {
	for axis := range p.Values[in].Shape {
		before, after := p.ExtentOf(in, axis), p.ExtentOf(output, axis)
		var past, step []int
		for k := range p.Extents {
			for range before.Times[k] {
				past = append(past, k)
			}
			for range after.Times[k] - before.Times[k] {
				step = append(step, k)
			}
		}
		switch {
		case len(step) == 0 && before.Plus == after.Plus:
		case ok || len(step) != 1 || len(past) != 1 || step[0] == past[0] || before.Plus != 0 || after.Plus != 0:
			return Decoding{}, false
		default:
			d, ok = Decoding{Past: past[0], Step: step[0]}, true
		}
	}
	return d, ok
}
