package state

import "sync"

// Members counts sessions by identity. Its methods are safe for concurrent use, so callers need not lock the machine.
type Members struct {
	mu     sync.Mutex
	counts map[string]int
}

// Members returns the machine's counts.
func (m *Machine) Members() *Members { return &m.members }

// Of returns the number of sessions of an identity.
func (m *Members) Of(identity string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[identity]
}

func (m *Members) add(identity string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	if m.counts[identity] += n; m.counts[identity] == 0 {
		delete(m.counts, identity)
	}
}
