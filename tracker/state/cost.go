package state

import (
	"cmp"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy"
)

// cost is what a lease costs its owner: the seconds that its trials occupied the device or compiler or, if the reports
// have none, the time that the agent held the lease.
type cost struct {
	charge  *policy.Charge
	queue   *queue
	size    int
	granted time.Time
	// Reported so far.
	seconds float64
}

// firstCost is the assumed cost of a candidate, in seconds, before the class has any history.
const firstCost = 1

// begin charges the estimated cost of size candidates.
func (q *queue) begin(now time.Time, charge *policy.Charge, size int) cost {
	each := cmp.Or(q.cost, firstCost)
	charge.Set(each * float64(size))
	return cost{charge: charge, queue: q, size: size, granted: now}
}

// spend adds reported seconds, bounded by the time since the grant. Anything above the estimate is charged at once.
func (c *cost) spend(now time.Time, seconds float64) {
	if seconds > 0 {
		c.seconds = min(c.seconds+seconds, now.Sub(c.granted).Seconds())
		c.atLeast(c.seconds)
	}
}

// atLeast raises the charge to seconds.
func (c *cost) atLeast(seconds float64) {
	if seconds > c.charge.Paid() {
		c.charge.Set(seconds)
	}
}

// learningRate is the weight of the latest lease in the moving average of costs.
const learningRate = 0.2

// settle replaces the estimate with the actual cost.
func (c *cost) settle(now time.Time) {
	spent := c.seconds
	if spent <= 0 {
		spent = max(now.Sub(c.granted).Seconds(), 0)
	}
	c.charge.Set(spent)
	c.charge.End()
	each := spent / float64(max(c.size, 1))
	c.queue.cost = cmp.Or(c.queue.cost, each)
	c.queue.cost += learningRate * (each - c.queue.cost)
}
