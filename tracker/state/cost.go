package state

import (
	"time"

	"github.com/tilth-dev/tilth/tracker/policy/fairqueue"
)

// cost is what a lease costs its owner: the seconds for which its trials held the device or the compiler, or, where
// none are told, those for which the agent had it.
type cost struct {
	charge  *fairqueue.Charge
	queue   *queue
	size    int
	granted time.Time
	// As told so far.
	seconds float64
}

// firstCost is what a candidate of a class is taken to cost before any was seen, in seconds.
const firstCost = 1

// begin charges the estimate for so many candidates.
func (q *queue) begin(now time.Time, charge *fairqueue.Charge, size int) cost {
	each := q.cost
	if each == 0 {
		each = firstCost
	}
	charge.Set(each * float64(size))
	return cost{charge: charge, queue: q, size: size, granted: now}
}

// spend adds what was told of, which is no more than there was time for; what exceeds the estimate is paid at once.
func (c *cost) spend(now time.Time, seconds float64) {
	if seconds > 0 {
		c.seconds = min(c.seconds+seconds, now.Sub(c.granted).Seconds())
		c.atLeast(c.seconds)
	}
}

// atLeast pays for so many seconds now, if that is more than was paid.
func (c *cost) atLeast(seconds float64) {
	if seconds > c.charge.Paid() {
		c.charge.Set(seconds)
	}
}

// learningRate is the weight of the last lease in the average by which the next is estimated.
const learningRate = 0.2

// settle charges what the lease took in place of what was estimated.
func (c *cost) settle(now time.Time) {
	spent := c.seconds
	if spent <= 0 {
		spent = max(now.Sub(c.granted).Seconds(), 0)
	}
	c.charge.Set(spent)
	c.charge.End()
	each := spent / float64(max(c.size, 1))
	if c.queue.cost == 0 {
		c.queue.cost = each
	}
	c.queue.cost += learningRate * (each - c.queue.cost)
}
