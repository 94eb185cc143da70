package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Sampling of counters: every minute for an hour, every half hour for a day.
const (
	noteEvery      = time.Minute
	fineFor        = time.Hour
	coarseInterval = 30 * time.Minute
	historyLength  = 25 * time.Hour
	maxNotes       = int(fineFor/noteEvery+historyLength/coarseInterval) + 2
)

// history holds past values of counters, and since when alerts have been firing.
type history struct {
	mu    sync.Mutex
	notes []note
	since map[string]time.Time
}

// note holds the counters at one time.
type note struct {
	at time.Time
	metrics
}

// Run samples counters until ctx ends. Alerts need them to compute growth.
func (s *Site) Run(ctx context.Context) {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		m := s.gather()
		s.history.note(m, s.Now())
		s.problems(view{now: m, at: s.Now(), notReady: s.Checks.Ready(ctx)})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// note stores the counters that alerts use.
func (w *history) note(m metrics, now time.Time) {
	kept := metrics{}
	for _, a := range alerts {
		for _, name := range a.Metrics {
			name = strings.TrimSuffix(name, "_bucket")
			if f := m[name]; a.Window > 0 && f != nil {
				kept[name] = f
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{now, kept})
	var last time.Time
	w.notes = slices.DeleteFunc(w.notes, func(n note) bool {
		age := now.Sub(n.at)
		old := age > historyLength || age > fineFor && n.at.Sub(last) < coarseInterval
		if !old {
			last = n.at
		}
		return old
	})
	w.notes = w.notes[max(0, len(w.notes)-maxNotes):]
}

// before returns the counters as of window ago. A tracker that has not run that long started from zero.
func (w *history) before(now time.Time, window time.Duration) metrics {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range slices.Backward(w.notes) {
		if now.Sub(n.at) >= window {
			return n.metrics
		}
	}
	return metrics{}
}

// rate returns the growth of a counter per second since the last note, or the one before; negative if unknown.
func (w *history) rate(name string, count float64, now time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range slices.Backward(w.notes) {
		if passed := now.Sub(n.at); passed >= noteEvery/2 {
			return max(0, count-n.where(name, "", "")) / passed.Seconds()
		}
	}
	return -1
}

// held returns how long an alert has been firing; 0 if it is not.
func (w *history) held(name string, holds bool, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !holds {
		delete(w.since, name)
		return 0
	}
	if _, is := w.since[name]; !is {
		if w.since == nil {
			w.since = map[string]time.Time{}
		}
		w.since[name] = now
	}
	return now.Sub(w.since[name])
}
