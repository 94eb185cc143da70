package state

import (
	"iter"
	"slices"
)

// othersBuild says whether somebody else is at work who could build what one builder has built. Of many some are
// asked.
func (m *Machine) othersBuild(b *batch) bool {
	now := m.cfg.Clock()
	for a := range m.someBuilders(b) {
		if a.owner() != b.builtBy && a.takesWork(now) {
			return true
		}
	}
	return false
}

// buildElsewhere has a batch built again, by somebody else if one is there soon.
func (c *Change) buildElsewhere(b *batch) {
	c.toBuild(b)
	for a := range c.someBuilders(b) {
		if a.owner() == b.builtBy {
			b.failedBy = append(b.failedBy, a.name())
		}
	}
	slices.Sort(b.failedBy)
}

// someBuilders are agents that offer to build for a batch's target.
func (m *Machine) someBuilders(b *batch) iter.Seq[*agent] {
	return func(yield func(*agent) bool) {
		q, asked := m.queues[b.buildClass()], 0
		if q == nil {
			return
		}
		for a := range q.offering {
			if asked++; asked > mostOthersAsked || !yield(a) {
				return
			}
		}
	}
}
