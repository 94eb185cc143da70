package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
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
		m, err := s.gather()
		if err != nil {
			s.Logger.Warn("metrics not gathered", "error", err)
		}
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

// problems evaluates all alerts. An alert that has not fired long enough is pending, as in Prometheus.
func (s *Site) problems(v view) (out []problem) {
	for _, a := range alerts {
		if v.before = nil; a.Window > 0 {
			v.before = s.history.before(v.at, a.Window)
		}
		found := a.wrong(a, v)
		lasted := s.history.held(a.Name, len(found) > 0, v.at)
		for _, p := range found {
			p.Alert, p.Pending = a.Name, lasted < a.For
			out = append(out, p)
		}
	}
	return out
}

// only returns the value of a metric with a single series; is reports whether it exists.
func (m metrics) only(name string) (v float64, is bool) {
	for _, one := range m[name].GetMetric() {
		return value(one), true
	}
	return 0, false
}

// where sums the series of a metric whose label has the prefix; an empty prefix matches all.
func (m metrics) where(name, label, prefix string) (total float64) {
	for _, one := range m[name].GetMetric() {
		if strings.HasPrefix(labelOf(one, label), prefix) {
			total += value(one)
		}
	}
	return total
}

// max returns the largest sum of where over all shards.
func (m metrics) max(name, label, prefix string) (largest float64) {
	byShard := map[string]float64{}
	for _, one := range m[name].GetMetric() {
		if strings.HasPrefix(labelOf(one, label), prefix) {
			byShard[labelOf(one, "shard")] += value(one)
		}
	}
	for _, total := range byShard {
		largest = max(largest, total)
	}
	return largest
}

// labelOf returns the value of a metric's label, or "".
func labelOf(m *dto.Metric, label string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == label {
			return pair.GetValue()
		}
	}
	return ""
}

// slower counts a histogram's samples, and those above a limit, to the precision of its buckets.
func (m metrics) slower(name string, limit float64) (all, slow float64) {
	for _, one := range m[name].GetMetric() {
		h := one.GetHistogram()
		all += float64(h.GetSampleCount())
		within := uint64(0)
		for _, b := range h.GetBucket() {
			if within = b.GetCumulativeCount(); b.GetUpperBound() >= limit {
				break
			}
		}
		slow += float64(h.GetSampleCount() - within)
	}
	return all, slow
}
