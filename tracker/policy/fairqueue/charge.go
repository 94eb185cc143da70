package fairqueue

// Charge is what the flows of an item that was taken pay for it. It is for the goroutine of its queue.
type Charge struct {
	pay   func(seconds float64)
	end   func()
	paid  float64
	ended bool
}

// Set makes what is paid in all so many seconds: an estimate first, and what became of it later.
func (c *Charge) Set(seconds float64) {
	if c.ended || !(seconds >= 0) {
		return
	}
	c.pay(seconds - c.paid)
	c.paid = seconds
}

// Paid is what the item costs so far, in seconds.
func (c *Charge) Paid() float64 { return c.paid }

// End says that the item is done; what was set last is what it cost. Ending it again changes nothing.
func (c *Charge) End() {
	if !c.ended {
		c.ended = true
		c.end()
	}
}
