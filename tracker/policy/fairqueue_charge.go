package policy

// Charge is what the flows of a taken item pay for it. It must be used under the same synchronization as its queue.
type Charge struct {
	pay   func(seconds float64)
	end   func()
	paid  float64
	ended bool
}

// Set sets the total charge in seconds: first an estimate, later the actual cost.
func (c *Charge) Set(seconds float64) {
	if c.ended || !(seconds >= 0) {
		return
	}
	c.pay(seconds - c.paid)
	c.paid = seconds
}

// Paid returns the charge so far in seconds.
func (c *Charge) Paid() float64 { return c.paid }

// End marks the item as done at its last charge. Repeating the call changes nothing.
func (c *Charge) End() {
	if !c.ended {
		c.ended = true
		c.end()
	}
}
