package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy"
)

var (
	cooldownPolicy = policy.Cooldown{First: time.Second, Max: time.Minute}
	cooldownNow    = time.Unix(1000, 0)
)

func TestAgentIsBlamedWhenLeasesOfSeveralBatchesFailInARow(t *testing.T) {
	for _, c := range []struct {
		name     string
		subjects []string
		blamed   bool
	}{
		{"twice", []string{"a", "b"}, false},
		{"three times, of one batch", []string{"a", "a", "a", "a"}, false},
		{"three times, of several", []string{"a", "a", "b"}, true},
	} {
		var r policy.FailureRecord
		blamed := false
		for _, subject := range c.subjects {
			blamed = r.AddFailure(of(subject, "job"), true)
		}
		if blamed != c.blamed {
			t.Errorf("%s: blamed is %v", c.name, blamed)
		}
	}
}

func TestLeaseThatIsCompletedForgivesThoseThatFailed(t *testing.T) {
	var r policy.FailureRecord
	r.AddFailure(of("a", "job"), true)
	r.AddFailure(of("b", "job"), true)
	r.Reset()
	if r.AddFailure(of("c", "job"), true) {
		t.Error("the agent is blamed for what failed before")
	}
}

func TestLeasesThatEndWithASessionAreOneFailure(t *testing.T) {
	var r policy.FailureRecord
	for i, subject := range []string{"a", "b", "c", "d"} {
		if r.AddFailure(of(subject, "job"), i == 0) {
			t.Errorf("the agent is blamed at lease %d", i)
		}
	}
}

func TestFailuresOfOneJobCoolDownOnlyThatJob(t *testing.T) {
	r := failed("one", "one", "one")
	cooldownPolicy.Begin(r, cooldownNow, cooldownNow, "crashed")
	if r.InCooldown(cooldownNow) || !r.InCooldownFor(of("x", "one"), cooldownNow) || r.InCooldownFor(of("x", "two"), cooldownNow) || r.CooldownJob(cooldownNow) != "one" {
		t.Error("the rest is not from the job alone")
	}
	if _, reason, _ := r.Last(); !strings.HasPrefix(reason, "from one: ") {
		t.Errorf("the reason is %q", reason)
	}
	r.AddFailure(of("x", "two"), true)
	if _, begun := cooldownPolicy.Begin(r, cooldownNow, cooldownNow, "crashed"); !begun || !r.InCooldown(cooldownNow) {
		t.Error("another job's failure does not make it a rest from all")
	}
}

func TestCooldownEndsAndTheNextIsLonger(t *testing.T) {
	r, now := failed("one", "two", "two"), cooldownNow
	for i := range 5 {
		wait, begun := cooldownPolicy.Begin(r, now, now, "crashed")
		if smallest := cooldownPolicy.First << i / 2; !begun || wait < smallest {
			t.Fatalf("rest %d takes %v, at least %v is due", i, wait, smallest)
		}
		if _, again := cooldownPolicy.Begin(r, now, now, "crashed"); again {
			t.Fatal("a rest begins within another")
		}
		if !r.InCooldown(now.Add(wait-1)) || r.InCooldown(now.Add(wait)) {
			t.Fatalf("the rest does not end after %v", wait)
		}
		now = now.Add(wait)
	}
}

// TestFailuresOfOneBuilderCoolDownOnlyThatBuilder is a regression test: a builder whose objects do not run kept
// devices from the work of others.
func TestFailuresOfOneBuilderCoolDownOnlyThatBuilder(t *testing.T) {
	by := func(builder, job string) policy.Work {
		return policy.Work{Subject: builder + job, Job: job, Builder: builder}
	}
	var r policy.FailureRecord
	for _, job := range []string{"one", "two", "three"} {
		r.AddFailure(by("bad", job), true)
	}
	cooldownPolicy.Begin(&r, cooldownNow, cooldownNow, "crashed")
	if r.InCooldown(cooldownNow) || !r.InCooldownFor(by("bad", "four"), cooldownNow) || r.InCooldownFor(by("good", "one"), cooldownNow) {
		t.Error("the rest is not from the builder alone")
	}
	if _, reason, _ := r.Last(); !strings.HasPrefix(reason, "from what bad builds: ") {
		t.Errorf("the reason is %q", reason)
	}
	r.AddFailure(by("good", "one"), true)
	if _, begun := cooldownPolicy.Begin(&r, cooldownNow, cooldownNow, "crashed"); !begun || !r.InCooldown(cooldownNow) {
		t.Error("another builder's failure does not make it a rest from all")
	}
}

func of(subject, job string) policy.Work { return policy.Work{Subject: subject, Job: job} }

// failed returns the record of an agent with failed leases of the given jobs.
func failed(jobs ...string) *policy.FailureRecord {
	var r policy.FailureRecord
	for i, job := range jobs {
		r.AddFailure(of(job+string(rune('a'+i)), job), true)
	}
	return &r
}

func TestCooldownReasonOmitsPrivateJob(t *testing.T) {
	for builder, want := range map[string]string{"": "from a private job: ", "b": "from what b builds of a private job: "} {
		var r policy.FailureRecord
		for _, subject := range []string{"a", "b", "c"} {
			r.AddFailure(policy.Work{Subject: subject, Job: "job", Builder: builder, Private: true}, true)
		}
		cooldownPolicy.Begin(&r, cooldownNow, cooldownNow, "crashed")
		if _, reason, _ := r.Last(); reason != want+"3 leases in a row failed, the last: crashed" {
			t.Errorf("it rests %q", reason)
		}
	}
}
