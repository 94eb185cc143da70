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
			blamed = r.Strike(of(subject, "job"), true)
		}
		if blamed != c.blamed {
			t.Errorf("%s: blamed is %v", c.name, blamed)
		}
	}
}

func TestALeaseThatIsCompletedForgivesThoseThatFailed(t *testing.T) {
	var r rest.Record
	r.Strike(of("a", "job"), true)
	r.Strike(of("b", "job"), true)
	r.Forgive()
	if r.Strike(of("c", "job"), true) {
		t.Error("the agent is blamed for what failed before")
	}
}

func TestLeasesThatEndWithASessionAreOneFailure(t *testing.T) {
	var r rest.Record
	for i, subject := range []string{"a", "b", "c", "d"} {
		if r.Strike(of(subject, "job"), i == 0) {
			t.Errorf("the agent is blamed at lease %d", i)
		}
	}
}

func TestWhatFailsForOneJobRestsFromThatJobOnly(t *testing.T) {
	r := failed("one", "one", "one")
	policy.Begin(r, now, now, "crashed")
	if r.Rests(now) || !r.RestsFrom(of("x", "one"), now) || r.RestsFrom(of("x", "two"), now) || r.From(now) != "one" {
		t.Error("the rest is not from the job alone")
	}
	if _, reason, _ := r.Last(); !strings.HasPrefix(reason, "from one: ") {
		t.Errorf("the reason is %q", reason)
	}
	r.Strike(of("x", "two"), true)
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

// TestWhatOneBuilderBuiltRestsFromThatBuilderOnly: one whose objects do not run used to keep devices from what others
// build.
func TestWhatOneBuilderBuiltRestsFromThatBuilderOnly(t *testing.T) {
	by := func(builder, job string) rest.Work {
		return rest.Work{Subject: builder + job, Job: job, Builder: builder}
	}
	var r rest.Record
	for _, job := range []string{"one", "two", "three"} {
		r.Strike(by("bad", job), true)
	}
	policy.Begin(&r, now, now, "crashed")
	if r.Rests(now) || !r.RestsFrom(by("bad", "four"), now) || r.RestsFrom(by("good", "one"), now) {
		t.Error("the rest is not from the builder alone")
	}
	if _, reason, _ := r.Last(); !strings.HasPrefix(reason, "from what bad builds: ") {
		t.Errorf("the reason is %q", reason)
	}
	r.Strike(by("good", "one"), true)
	if _, begun := policy.Begin(&r, now, now, "crashed"); !begun || !r.Rests(now) {
		t.Error("another builder's failure does not make it a rest from all")
	}
}

func of(subject, job string) rest.Work { return rest.Work{Subject: subject, Job: job} }

// failed is the record of an agent whose leases of these jobs failed.
func failed(jobs ...string) *rest.Record {
	var r rest.Record
	for i, job := range jobs {
		r.Strike(of(job+string(rune('a'+i)), job), true)
	}
	return &r
}

func TestARestNamesNoPrivateJob(t *testing.T) {
	for builder, want := range map[string]string{"": "from a private job: ", "b": "from what b builds of a private job: "} {
		var r rest.Record
		for _, subject := range []string{"a", "b", "c"} {
			r.Strike(rest.Work{Subject: subject, Job: "job", Builder: builder, Private: true}, true)
		}
		policy.Begin(&r, now, now, "crashed")
		if _, reason, _ := r.Last(); reason != want+"3 leases in a row failed, the last: crashed" {
			t.Errorf("it rests %q", reason)
		}
	}
}
