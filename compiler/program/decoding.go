package program

// Decoding says how executions follow one another in a program whose outputs continue inputs, as a decoder's keys and
// values do: each has Step more positions than the Past before it. Both are indices in Extents.
type Decoding struct{ Past, Step int }

// Decoding is that of the program; ok is false where no output continues an input, or two do so by different extents.
func (p *Program) Decoding() (d Decoding, ok bool) {
	for k, output := range p.Outputs {
		in := p.Continues(k)
		if in < 0 {
			continue
		}
		one, is := p.decoding(p.Inputs[in], output)
		if !is || ok && one != d {
			return Decoding{}, false
		}
		d, ok = one, true
	}
	return d, ok
}

// decoding is that of one output that continues an input: it has on one axis past and step elements where the input
// has past, and on the others as many as that.
func (p *Program) decoding(in, output int) (d Decoding, ok bool) {
	for axis := range p.Values[in].Shape {
		before, plus := p.times(in, axis)
		after, more := p.times(output, axis)
		var past, step []int
		for k := range p.Extents {
			for range before[k] {
				past = append(past, k)
			}
			for range after[k] - before[k] {
				step = append(step, k)
			}
		}
		switch {
		case len(step) == 0 && plus == more:
		case ok || len(step) != 1 || len(past) != 1 || step[0] == past[0] || plus != 0 || more != 0:
			return Decoding{}, false
		default:
			d, ok = Decoding{Past: past[0], Step: step[0]}, true
		}
	}
	return d, ok
}
