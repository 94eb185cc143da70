package engine

import (
	"sync"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// The events that wait for one watcher are bounded. One that is slower reads the stored log.
const (
	mostUnread      = 512
	mostUnreadBytes = 4 << 20
)

// Watches hand events to those who watch their jobs, once they are on disk.
type Watches struct {
	most  int
	mu    sync.Mutex
	open  int // subscriptions
	byJob map[string]map[*Subscription]struct{}
}

// Subscription is one watcher's share of a job's events.
type Subscription struct {
	wake   chan struct{} // has an element when there is something to take
	unread []*tilthv1.JobEvent
	bytes  int // of these
	// missed says that some were not kept: the stored log has them.
	missed bool
}

func newWatches(most int) *Watches {
	return &Watches{most: most, byJob: map[string]map[*Subscription]struct{}{}}
}

// Wake has an element when there is something to take.
func (s *Subscription) Wake() <-chan struct{} { return s.wake }

// Most is how many subscriptions there may be.
func (w *Watches) Most() int { return w.most }

// Subscribe has a job's events kept for a watcher from now on, until the subscription is ended; nil when there are as
// many as may be.
func (w *Watches) Subscribe(jobID string) *Subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open >= w.most {
		return nil
	}
	w.open++
	s := &Subscription{wake: make(chan struct{}, 1)}
	if w.byJob[jobID] == nil {
		w.byJob[jobID] = map[*Subscription]struct{}{}
	}
	w.byJob[jobID][s] = struct{}{}
	return s
}

// End ends a subscription.
func (w *Watches) End(jobID string, s *Subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	delete(w.byJob[jobID], s)
	if len(w.byJob[jobID]) == 0 {
		delete(w.byJob, jobID)
	}
}

// Count is how many subscriptions there are.
func (w *Watches) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// publish hands events of a job, in their order, to its watchers.
func (w *Watches) publish(jobID string, events []*tilthv1.JobEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byJob[jobID]) == 0 {
		return
	}
	bytes := 0
	for _, e := range events {
		bytes += proto.Size(e)
	}
	for s := range w.byJob[jobID] {
		if s.missed || len(s.unread)+len(events) > mostUnread || s.bytes+bytes > mostUnreadBytes {
			s.unread, s.bytes, s.missed = nil, 0, true
		} else {
			s.unread, s.bytes = append(s.unread, events...), s.bytes+bytes
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Take returns the events that wait for a watcher, and whether others were missed.
func (w *Watches) Take(s *Subscription) (events []*tilthv1.JobEvent, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed = s.unread, s.missed
	s.unread, s.bytes, s.missed = nil, 0, false
	return events, missed
}
