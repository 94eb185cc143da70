package tracker_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
)

// TestNoTrackerOfAShardShowsAnothersPrivateJob checks that neither of two trackers shows an owner the other's private
// data, whether it serves the job's shard, reads the job from the database, or forwards the call.
func TestNoTrackerOfAShardShowsAnothersPrivateJob(t *testing.T) {
	t.Parallel() // mostly waits
	database := pgserver.DatabaseForTest(t)
	records := privateRecords{}
	records.store(t, database)
	c := newClosedRivalsOn(t, database)
	owners := []string{ownerOf(c.shards(c.a)[0]), ownerOf(c.shards(c.b)[0])}
	var jobs []string
	for i, owner := range owners {
		s := submission("private")
		s.Spec.Name, s.Spec.Private = secret+" of "+owner, true
		made := &tilthv1.SubmitJobResponse{}
		// Each owner submits at the tracker without their shard.
		if code, text := c.call([]*rival{c.b, c.a}[i], owner, "POST", "jobs", s, made); code != http.StatusOK {
			t.Fatalf("%s submits: %d, %s", owner, code, text)
		}
		jobs = append(jobs, made.GetJob().GetId())
	}
	for i, job := range jobs {
		owner, other := owners[i], owners[1-i]
		for at, r := range map[string]*rival{"the first tracker": c.a, "the second tracker": c.b} {
			c.hides(r, at, other, job)
			c.hides(r, at, "reader", job)
			c.showsAll(r, at, owner, job)
			c.showsAll(r, at, "admin", job)
			records.check(c, r, at, owner)
		}
		found := &tilthv1.GetJobResponse{}
		if code, text := c.call(c.a, owner, "GET", "jobs/"+job, nil, found); found.GetJob().GetState() != tilthv1.JobState_JOB_STATE_QUEUED {
			t.Errorf("after what others tried, the job of %s is %v: %d, %s", owner, found.GetJob().GetState(), code, text)
		}
	}
	for at, r := range map[string]*rival{"the first tracker": c.a, "the second tracker": c.b} {
		for _, who := range []string{"reader", "admin"} {
			records.check(c, r, at, who)
		}
	}
}

// hides checks that a tracker answers about a job exactly as if it did not exist.
func (c *closedRivals) hides(r *rival, at, who, job string) {
	c.Helper()
	none := job[:len(job)-1] + "9"
	for _, path := range []string{"", "/events"} {
		code, text := c.call(r, who, "GET", "jobs/"+job+path, nil, nil)
		want, unknown := c.call(r, who, "GET", "jobs/"+none+path, nil, nil)
		if code != http.StatusNotFound || code != want || strings.ReplaceAll(text, job, none) != unknown {
			c.Errorf("at %s %s gets of %s%s: %d, %s; of no job: %d, %s", at, who, job, path, code, text, want, unknown)
		}
	}
	for _, path := range []string{"/jobs/" + job, "/jobs/" + job + "/tasks/0", "/jobs/" + job + "/actions/cancel", "/compare?a=" + job + "&b=" + job} {
		code, _, text := c.ask(c.web[r], who, "GET", path, "", "")
		if code != http.StatusNotFound || strings.Contains(text, secret) {
			c.Errorf("at %s %s is shown %s: %d, %s", at, who, path, code, text)
		}
	}
	owner := secret + " of " + who
	for _, path := range []string{"/", "/jobs", "/devices", "/api/v1/jobs", "/api/v1/jobs?pageSize=1", "/metrics"} {
		code, _, text := c.ask(c.web[r], who, "GET", path, "", "")
		if code != http.StatusOK || strings.Contains(strings.ReplaceAll(text, owner, ""), secret) || strings.Contains(text, job) {
			c.Errorf("at %s %s reads of the job at %s: %d, %s", at, who, path, code, text)
		}
	}
	if who == "reader" {
		return // it may not change anything anyway
	}
	for action, message := range map[string]proto.Message{
		"cancel": &tilthv1.CancelJobRequest{}, "pause": &tilthv1.PauseJobRequest{}, "resume": &tilthv1.ResumeJobRequest{},
		"retry": &tilthv1.RetryDeadLettersRequest{},
	} {
		code, text := c.call(r, who, "POST", "jobs/"+job+":"+action, message, nil)
		want, unknown := c.call(r, who, "POST", "jobs/"+none+":"+action, message, nil)
		if code == http.StatusOK || code != want || strings.ReplaceAll(text, job, none) != unknown {
			c.Errorf("at %s %s may %s the job: %d, %s; of no job: %d, %s", at, who, action, code, text, want, unknown)
		}
	}
	if code, text := c.call(r, who, "DELETE", "jobs/"+job, nil, nil); code != http.StatusOK {
		c.Errorf("at %s %s deletes the job, as one that is gone: %d, %s", at, who, code, text)
	}
}

// showsAll checks that a tracker shows a job to permitted callers.
func (c *closedRivals) showsAll(r *rival, at, who, job string) {
	c.Helper()
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/" + job, "/jobs", "/jobs/" + job, "/jobs/" + job + "/tasks/0"} {
		if code, _, text := c.ask(c.web[r], who, "GET", path, "", ""); code != http.StatusOK || !strings.Contains(text, secret) || !strings.Contains(text, job) {
			c.Errorf("at %s %s does not read of the job at %s: %d, %s", at, who, path, code, text)
		}
	}
}

// privateRecords is a shared record of a workload, and a faster private record for the owner of each shard.
type privateRecords struct{}

// seconds returns the latency of the private record of a shard's owner.
func (privateRecords) seconds(shard int) float64 { return 1e-3 * float64(1+shard) }

// store adds the records to a database without a running tracker.
func (p privateRecords) store(t *testing.T, database string) {
	t.Helper()
	db := must[*postgres.DB](t)(postgres.Open(database, postgres.Options{Shards: someShards}))
	all := []*tilthv1.Record{storetest.Record("cpu-1", "conv", 100, 1)}
	for shard := range someShards {
		all = append(all, storetest.Record(records.Private("cpu-1", ownerOf(shard)), "conv", int64(101+shard), p.seconds(shard)))
	}
	storetest.Add(t, db, all...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// check checks the records visible to a user: owners see the shared record and their own, others only the shared one.
func (p privateRecords) check(c *closedRivals, r *rival, at, who string) {
	c.Helper()
	want := []float64{1}
	for shard := range someShards {
		if ownerOf(shard) == who {
			want = []float64{p.seconds(shard), 1}
		}
	}
	best := &tilthv1.BestRecordsResponse{}
	code, text := c.call(r, who, "GET", "records:best", nil, best)
	if got := latencies(best.GetRecords()); !slices.Equal(got, want[:1]) {
		c.Errorf("at %s the best for %s take %v s, want %v: %d, %s", at, who, got, want[:1], code, text)
	}
	code, text = c.call(r, who, "GET", "records", nil, nil)
	if n := strings.Count(text, `"latencySeconds"`); code != http.StatusOK || n != len(want) || errors.Join(p.lacks(text, want)...) != nil {
		c.Errorf("at %s the list of %s has %d records, want %v: %d, %s", at, who, n, want, code, text)
	}
}

// lacks returns an error for each latency missing from a JSON list.
func (privateRecords) lacks(text string, latencies []float64) (missing []error) {
	for _, s := range latencies {
		if !strings.Contains(text, fmt.Sprintf(`"latencySeconds":%v`, s)) && !strings.Contains(text, fmt.Sprintf(`"latencySeconds": %v`, s)) {
			missing = append(missing, fmt.Errorf("%v s", s))
		}
	}
	return missing
}
