package tracker

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

// watches hand events to those who watch their jobs, once they are on disk.
type watches struct {
	mu    sync.Mutex
	open  int // subscriptions
	byJob map[string]map[*subscription]struct{}
}

// subscription is one watcher's share of a job's events.
type subscription struct {
	// wake has an element when there is something to take.
	wake   chan struct{}
	unread []*tilthv1.JobEvent
	bytes  int // of these
	// missed says that some were not kept: the stored log has them.
	missed bool
}

func newWatches() watches { return watches{byJob: map[string]map[*subscription]struct{}{}} }

// subscribe has a job's events kept for a watcher from now on, until the subscription is ended; nil when there are as
// many as may be.
func (w *watches) subscribe(jobID string, most int) *subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open >= most {
		return nil
	}
	w.open++
	s := &subscription{wake: make(chan struct{}, 1)}
	if w.byJob[jobID] == nil {
		w.byJob[jobID] = map[*subscription]struct{}{}
	}
	w.byJob[jobID][s] = struct{}{}
	return s
}

func (w *watches) end(jobID string, s *subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	delete(w.byJob[jobID], s)
	if len(w.byJob[jobID]) == 0 {
		delete(w.byJob, jobID)
	}
}

func (w *watches) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// publish hands events of a job, in their order, to its watchers.
func (w *watches) publish(jobID string, events []*tilthv1.JobEvent) {
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

// take returns the events that wait for a watcher, and whether others were missed.
func (w *watches) take(s *subscription) (events []*tilthv1.JobEvent, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed = s.unread, s.missed
	s.unread, s.bytes, s.missed = nil, 0, false
	return events, missed
}
