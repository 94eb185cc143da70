package state

import (
	"iter"
	"slices"
)

// othersBuild reports whether another builder is available for a batch. It checks a bounded number of agents.
func (m *Machine) othersBuild(b *batch) bool {
	now := m.cfg.Clock()
	for a := range m.someBuilders(b) {
		if a.owner() != b.builtBy && a.takesWork(now) {
			return true
		}
	}
	return false
}

// buildElsewhere requeues a batch for building, preferably by another builder.
func (c *Change) buildElsewhere(b *batch) {
	c.toBuild(b)
	for a := range c.someBuilders(b) {
		if a.owner() == b.builtBy {
			b.failedBy = append(b.failedBy, a.name())
		}
	}
	slices.Sort(b.failedBy)
}

// someBuilders yields a bounded number of agents that can build for the batch's target.
func (m *Machine) someBuilders(b *batch) iter.Seq[*agent] {
	return func(yield func(*agent) bool) {
		q, asked := m.queues[b.buildClass()], 0
		if q == nil {
			return
		}
		for a := range q.offering {
			if asked++; asked > maxOthersAsked || !yield(a) {
				return
			}
		}
	}
}
