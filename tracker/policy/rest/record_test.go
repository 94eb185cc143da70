package rest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy/rest"
)

var (
	policy = rest.Policy{First: time.Second, Longest: time.Minute}
	now    = time.Unix(1000, 0)
)

func TestAnAgentIsBlamedWhenLeasesOfSeveralBatchesFailInARow(t *testing.T) {
	for _, c := range []struct {
		name     string
		subjects []string
		blamed   bool
	}{
		{"twice", []string{"a", "b"}, false},
		{"three times, of one batch", []string{"a", "a", "a", "a"}, false},
		{"three times, of several", []string{"a", "a", "b"}, true},
	} {
		var r rest.Record
		blamed := false
		for _, subject := range c.subjects {
			blamed = r.Strike(subject, "job", true)
		}
		if blamed != c.blamed {
			t.Errorf("%s: blamed is %v", c.name, blamed)
		}
	}
}

func TestALeaseThatIsCompletedForgivesThoseThatFailed(t *testing.T) {
	var r rest.Record
	r.Strike("a", "job", true)
	r.Strike("b", "job", true)
	r.Forgive()
	if r.Strike("c", "job", true) {
		t.Error("the agent is blamed for what failed before")
	}
}

func TestLeasesThatEndWithASessionAreOneFailure(t *testing.T) {
	var r rest.Record
	for i, subject := range []string{"a", "b", "c", "d"} {
		if r.Strike(subject, "job", i == 0) {
			t.Errorf("the agent is blamed at lease %d", i)
		}
	}
}

func TestWhatFailsForOneJobRestsFromThatJobOnly(t *testing.T) {
	r := failed("one", "one", "one")
	policy.Begin(r, now, now, "crashed")
	if r.Rests(now) || !r.RestsFrom("one", now) || r.RestsFrom("two", now) || r.From(now) != "one" {
		t.Error("the rest is not from the job alone")
	}
	if _, reason, _ := r.Last(); !strings.HasPrefix(reason, "from one: ") {
		t.Errorf("the reason is %q", reason)
	}
	r.Strike("x", "two", true)
	if _, begun := policy.Begin(r, now, now, "crashed"); !begun || !r.Rests(now) {
		t.Error("another job's failure does not make it a rest from all")
	}
}

func TestARestEndsAndTheNextIsLonger(t *testing.T) {
	r, now := failed("one", "two", "two"), now
	for i := range 5 {
		wait, begun := policy.Begin(r, now, now, "crashed")
		if least := policy.First << i / 2; !begun || wait < least {
			t.Fatalf("rest %d takes %v, at least %v is due", i, wait, least)
		}
		if _, again := policy.Begin(r, now, now, "crashed"); again {
			t.Fatal("a rest begins within another")
		}
		if !r.Rests(now.Add(wait-1)) || r.Rests(now.Add(wait)) {
			t.Fatalf("the rest does not end after %v", wait)
		}
		now = now.Add(wait)
	}
}

// failed is the record of an agent whose leases of these jobs failed.
func failed(jobs ...string) *rest.Record {
	var r rest.Record
	for i, job := range jobs {
		r.Strike(job+string(rune('a'+i)), job, true)
	}
	return &r
}
