package state

import "sync"

// Members counts the sessions of each identity, for those who may not wait for whoever has the machine: its methods
// may be called at any time.
type Members struct {
	mu     sync.Mutex
	counts map[string]int
}

// Members are the machine's.
func (m *Machine) Members() *Members { return &m.members }

// Of is how many sessions an identity has.
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
