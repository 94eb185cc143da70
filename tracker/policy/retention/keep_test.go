package retention_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/tracker/policy/retention"
)

var now = time.Unix(1_000_000, 0)

// archive returns ended jobs of 10 bytes, of owners in turn, one hour apart, the last one ended now.
func archive(jobs int, owners ...string) *retention.Archive {
	a := retention.NewArchive()
	for i := range jobs {
		a.Add(&retention.Job{
			ID: fmt.Sprint("job-", i), Owner: owners[i%len(owners)], Bytes: 10, Ended: now.Add(-time.Duration(jobs-1-i) * time.Hour),
		})
	}
	return a
}

func TestTheOldestJobGoesFirstByTheBoundThatIsExceeded(t *testing.T) {
	unbounded := retention.Rules{Keep: retention.Keep{Jobs: -1, Age: -1}, Ended: 1000, EndedBytes: 1 << 30}
	for _, c := range []struct {
		name    string
		rules   func(*retention.Rules)
		room    int64
		id, why string
	}{
		{"no bound", func(*retention.Rules) {}, -1, "", ""},
		{"as many as the owner may keep", func(r *retention.Rules) { r.Jobs = 2 }, -1, "", ""},
		{"more than the owner may keep", func(r *retention.Rules) { r.Jobs = 1 }, -1, "job-1", retention.Count},
		{"as many bytes as the owner has room for", func(*retention.Rules) {}, 20, "", ""},
		{"more bytes than the owner has room for", func(*retention.Rules) {}, 19, "job-1", retention.Bytes},
		{"more than all may keep", func(r *retention.Rules) { r.Ended = 3 }, -1, "job-0", retention.Count},
		{"more bytes than all may keep", func(r *retention.Rules) { r.EndedBytes = 39 }, -1, "job-0", retention.Bytes},
		{"one of the age", func(r *retention.Rules) { r.Age = 3 * time.Hour }, -1, "", ""},
		{"one beyond the age", func(r *retention.Rules) { r.Age = 3*time.Hour - 1 }, -1, "job-0", retention.Age},
	} {
		rules := unbounded
		c.rules(&rules)
		j, why := rules.Superfluous(archive(4, "ada", "bob"), "bob", c.room, now)
		if why != c.why || j != nil && j.ID != c.id || (j == nil) != (c.id == "") {
			t.Errorf("%s: %+v goes for %q, want %q for %q", c.name, j, why, c.id, c.why)
		}
	}
}

func TestAJobThatIsRemovedCountsForNobody(t *testing.T) {
	a := archive(3, "ada", "bob")
	a.Remove(a.Job("job-1"))
	if jobs, bytes := a.Of("bob"); jobs != 0 || bytes != 0 || len(a.Owners()) != 1 {
		t.Errorf("bob has %d jobs of %d bytes", jobs, bytes)
	}
	if a.Len() != 2 || a.Bytes() != 20 || a.Job("job-1") != nil {
		t.Errorf("%d jobs of %d bytes are kept", a.Len(), a.Bytes())
	}
}
