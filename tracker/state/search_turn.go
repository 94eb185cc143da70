package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// EndTurns takes jobs from tuners that have held them for a turn while other jobs wait. A search may take days, but
// its state is in the job's events, so any tuner can continue it.
func (c *Change) EndTurns() {
	for _, class := range slices.SortedFunc(maps.Keys(c.queues), class.compare) {
		if class.kind == tilthv1.AgentKind_AGENT_KIND_TUNER && !class.reads && c.queues[class].work.Len() > 0 {
			c.endTurnsOf(c.queues[class])
		}
	}
	c.endTurnElsewhere()
}

// endTurnsOf frees at most as many tuners as jobs are waiting, longest held first.
func (c *Change) endTurnsOf(q *queue) {
	now := c.cfg.Clock()
	waiting := q.work.Len()
	held := q.held()
	for _, l := range held {
		l.atLeast(now.Sub(l.granted).Seconds())
	}
	for _, l := range held {
		if waiting == 0 || now.Sub(l.granted) < c.cfg.SearchTurn {
			return
		}
		if q.work.Ahead(c.flow(l.work)) {
			c.giveUpTurn(l.work.(*job))
			waiting--
		}
	}
}

// held returns the leases of the class, oldest first.
func (q *queue) held() (out []*lease) {
	for a := range q.offering {
		for _, l := range a.leases {
			if l.queue == q {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, func(a, b *lease) int {
		return cmp.Or(a.granted.Compare(b.granted), cmp.Compare(a.work.subject(), b.work.subject()))
	})
	return out
}

// giveUpTurn requeues a job behind those waiting. Its tuner learns of it with the next heartbeat.
func (c *Change) giveUpTurn(j *job) {
	held := c.cfg.Clock().Sub(j.lease.granted).Round(time.Second)
	c.release(j)
	c.setState(j, tilthv1.JobState_JOB_STATE_QUEUED, "others wait for a tuner, which it had for "+held.String())
	c.enqueue(j, false)
}
