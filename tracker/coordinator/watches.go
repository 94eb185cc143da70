package coordinator

import (
	"sync"

	"google.golang.org/protobuf/proto"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// The unread events of one watcher are bounded. A watcher that falls behind reads the stored log.
const (
	maxUnread      = 512
	maxUnreadBytes = 4 << 20
)

// Watches deliver events to the watchers of their jobs once they are on disk.
type Watches struct {
	max   int
	mu    sync.Mutex
	open  int // subscriptions
	byJob map[string]map[*Subscription]struct{}
}

// Subscription holds the unread events of one watcher.
type Subscription struct {
	wake   chan struct{} // has an element when there is something to take
	unread []*tilthv1.JobEvent
	bytes  int // size of unread
	// missed is set when events were discarded; they are in the stored log.
	missed bool
}

func newWatches(limit int) *Watches {
	return &Watches{max: limit, byJob: map[string]map[*Subscription]struct{}{}}
}

// Wake returns a channel that receives when events can be taken.
func (s *Subscription) Wake() <-chan struct{} { return s.wake }

// Max returns the maximum number of subscriptions.
func (w *Watches) Max() int { return w.max }

// Subscribe starts buffering a job's events for a watcher. The caller must call End. It returns nil at the limit.
func (w *Watches) Subscribe(jobID string) *Subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open >= w.max {
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

// Count returns the number of subscriptions.
func (w *Watches) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// publish delivers a job's events, in order, to its watchers.
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
		if s.missed || len(s.unread)+len(events) > maxUnread || s.bytes+bytes > maxUnreadBytes {
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

// Take returns and clears the unread events; missed reports that others were discarded.
func (w *Watches) Take(s *Subscription) (events []*tilthv1.JobEvent, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed = s.unread, s.missed
	s.unread, s.bytes, s.missed = nil, 0, false
	return events, missed
}
