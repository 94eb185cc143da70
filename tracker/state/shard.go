package state

import (
	"maps"
	"slices"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// With several shards, an agent has a session with the machine of each. Machines learn of each other's work only
// through the agents' heartbeats.

// waitingWeight returns the total weight of the owners with work in the queue and of the owner of the item just taken.
func (m *Machine) waitingWeight(q *queue, taken work) float64 {
	weight := func(owner string) float64 { return m.cfg.Shares.Of(owner).Weight }
	own := taken.parent().spec.GetOwner()
	sum := weight(own)
	q.work.EachWaiting(func(owner string, _ int) {
		if owner != own {
			sum += weight(owner)
		}
	})
	return sum
}

// waitsFor reports whether work that the agent accepts is queued.
func (m *Machine) waitsFor(a *agent) bool {
	return m.cfg.Shards > 1 && slices.ContainsFunc(a.offers, func(c class) bool {
		q := m.queues[c]
		return q != nil && q.work.Len() > 0
	})
}

// endTurnElsewhere takes a job from a tuner that has held it for a turn while jobs wait for the tuner in another
// shard. It ends one turn at most: many tuners may be reporting the same waiting job.
func (c *Change) endTurnElsewhere() {
	for _, class := range slices.SortedFunc(maps.Keys(c.queues), class.compare) {
		if class.kind != tilthv1.AgentKind_AGENT_KIND_TUNER || class.reads {
			continue
		}
		for _, l := range c.queues[class].held() {
			if l.agent.wanted && c.cfg.Clock().Sub(l.granted) >= c.cfg.SearchTurn {
				l.agent.wanted = false
				c.giveUpTurn(l.work.(*job))
				return
			}
		}
	}
}
