package main

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// meter times calls and grants while it is open.
type meter struct {
	mu   sync.Mutex
	open bool
	// Short calls are those that wait for nothing. A grant's time is from when both sides were there, the call of the
	// agent and the call that makes the work, to when the agent has it.
	short, grants []time.Duration
	results       int
}

func (m *meter) set(open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = open
}

// shortCall notes a short call that brought results.
func (m *meter) shortCall(took time.Duration, results int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open {
		m.short = append(m.short, took)
		m.results += results
	}
}

// brought is how many results have come.
func (m *meter) brought() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results
}

func (m *meter) grant(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open {
		m.grants = append(m.grants, took)
	}
}

// quantile is the least of the times that so large a part of them does not exceed; 0 when there are none.
func quantile(times []time.Duration, part float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(int(part*float64(len(times))), len(times)-1)]
}

// stamp is a time as the name of a batch.
func stamp(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// stamped is the time that a batch is named after.
func stamped(name string) (time.Time, error) {
	n, err := strconv.ParseInt(name, 10, 64)
	return time.Unix(0, n), err
}
