package coordinator

import (
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestSlowWatcherMissesNoEvent checks that a slow watcher reads missed events from the store, so that its memory is
// bounded.
func TestSlowWatcherMissesNoEvent(t *testing.T) {
	w := newWatches(1)
	s := w.Subscribe("job")
	defer w.End("job", s)
	events := make([]*tilthv1.JobEvent, maxUnread)
	w.publish("job", events)
	if got, missed := w.Take(s); len(got) != maxUnread || missed {
		t.Errorf("%d events, missed: %v", len(got), missed)
	}
	w.publish("job", events[1:])
	w.publish("job", events[:2])
	w.publish("job", events[:1])
	if got, missed := w.Take(s); len(got) != 0 || !missed {
		t.Errorf("%d events of too many, missed: %v", len(got), missed)
	}
	w.publish("job", events[:1])
	if got, missed := w.Take(s); len(got) != 1 || missed {
		t.Errorf("%d events after some were missed, missed: %v", len(got), missed)
	}
}
