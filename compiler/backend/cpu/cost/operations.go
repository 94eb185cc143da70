package cost

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
