package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy"
)

var retentionNow = time.Unix(1_000_000, 0)

// archive returns ended jobs of 10 bytes, of owners in turn, one hour apart. The last one ended now.
func archive(jobs int, owners ...string) *policy.Archive {
	a := policy.NewArchive()
	for i := range jobs {
		a.Add(&policy.RetainedJob{
			ID: fmt.Sprint("job-", i), Owner: owners[i%len(owners)], Bytes: 10, Ended: retentionNow.Add(-time.Duration(jobs-1-i) * time.Hour),
		})
	}
	return a
}

func TestOldestJobGoesFirstByTheBoundThatIsExceeded(t *testing.T) {
	unbounded := policy.RetentionRules{Retention: policy.Retention{Jobs: -1, Age: -1}, Ended: 1000, EndedBytes: 1 << 30}
	for _, c := range []struct {
		name    string
		rules   func(*policy.RetentionRules)
		room    int64
		id, why string
	}{
		{"no bound", func(*policy.RetentionRules) {}, -1, "", ""},
		{"as many as the owner may keep", func(r *policy.RetentionRules) { r.Jobs = 2 }, -1, "", ""},
		{"more than the owner may keep", func(r *policy.RetentionRules) { r.Jobs = 1 }, -1, "job-1", policy.Count},
		{"as many bytes as the owner has room for", func(*policy.RetentionRules) {}, 20, "", ""},
		{"more bytes than the owner has room for", func(*policy.RetentionRules) {}, 19, "job-1", policy.Bytes},
		{"more than all may keep", func(r *policy.RetentionRules) { r.Ended = 3 }, -1, "job-0", policy.Count},
		{"more bytes than all may keep", func(r *policy.RetentionRules) { r.EndedBytes = 39 }, -1, "job-0", policy.Bytes},
		{"one of the age", func(r *policy.RetentionRules) { r.Age = 3 * time.Hour }, -1, "", ""},
		{"one beyond the age", func(r *policy.RetentionRules) { r.Age = 3*time.Hour - 1 }, -1, "job-0", policy.Age},
	} {
		rules := unbounded
		c.rules(&rules)
		j, why := rules.Excess(archive(4, "ada", "bob"), "bob", c.room, retentionNow)
		if why != c.why || j != nil && j.ID != c.id || (j == nil) != (c.id == "") {
			t.Errorf("%s: %+v goes for %q, want %q for %q", c.name, j, why, c.id, c.why)
		}
	}
}

func TestRemovedJobsCountForNoOwner(t *testing.T) {
	a := archive(3, "ada", "bob")
	a.Remove(a.Job("job-1"))
	if jobs, bytes := a.Of("bob"); jobs != 0 || bytes != 0 || len(a.Owners()) != 1 {
		t.Errorf("bob has %d jobs of %d bytes", jobs, bytes)
	}
	if a.Len() != 2 || a.Bytes() != 20 || a.Job("job-1") != nil {
		t.Errorf("%d jobs of %d bytes are kept", a.Len(), a.Bytes())
	}
}
