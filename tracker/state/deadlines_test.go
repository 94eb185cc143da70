package state

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestEndedLeasesLeaveTheDeadlineQueue checks that ended leases are removed, because each refers to its batch, and
// that the others expire on time.
func TestEndedLeasesLeaveTheDeadlineQueue(t *testing.T) {
	const leases = 200
	rng := rand.New(rand.NewPCG(1, 2))
	begin := time.Unix(0, 0)
	d := newDeadlines()
	d.agent(&agent{deadline: begin.Add(leases / 2 * time.Second)})
	var kept int
	for i := range leases {
		l := &lease{deadline: begin.Add(time.Duration(rng.IntN(leases)) * time.Second)}
		d.lease(l)
		if kept++; i%2 == 0 {
			d.drop(l)
			d.drop(l) // a repetition is a no-op
			kept--
		}
	}
	last := begin
	for due, ok := d.next(begin.Add(leases * time.Second)); ok; due, ok = d.next(begin.Add(leases * time.Second)) {
		if due.at.Before(last) {
			t.Fatalf("%v comes after %v", due.at, last)
		}
		last = due.at
		if due.lease != nil {
			kept--
			d.drop(due.lease) // already removed
		}
	}
	if kept != 0 || d.Len() != 0 {
		t.Errorf("%d leases did not come, %d deadlines are left", kept, d.Len())
	}
}
