package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// smallSpec returns the specification of a job without a model.
func smallSpec(owner string, priority uint32) *tilthv1.JobSpec {
	w := []byte("workload")
	return &tilthv1.JobSpec{
		Name: "m", Owner: owner, Priority: priority, Tuner: "random", Budget: &tilthv1.Budget{Trials: 7},
		Target: &tilthv1.TargetSpec{Fingerprint: "cpu", Toolchain: "clang", DeviceClass: "x86"},
		Tasks:  []*tilthv1.TaskSpec{{Name: "conv", Workload: w, WorkloadDigest: records.Digest(w), Weight: 1}},
	}
}

// TestJobsAreControlledFromTheCommandLine pauses, resumes, retries and lists jobs on a tracker without agents.
func TestJobsAreControlledFromTheCommandLine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"tracker": {"--max-jobs", "2", "--owner-weight", "ana=3", "--owner-max-trials", "ana=100"}}
	f.launch("tracker")
	f.awaitTracker(ctx)
	job, err := f.client.Submit(ctx, smallSpec("ana", 30))
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) string {
		t.Helper()
		p := f.tilth(ctx, append(append([]string{"jobs"}, args...), "--tracker", f.tracker)...)
		p.mustRun()
		return p.stdout.String()
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"pause", job.GetId(), "--reason", ""}, "job " + job.GetId() + ": paused\n"},
		{[]string{"resume", job.GetId(), "--reason", ""}, "job " + job.GetId() + ": queued\n"},
		{[]string{"pause", job.GetId(), "--reason", "lunch"}, "job " + job.GetId() + ": paused (lunch)\n"},
		{[]string{"list", "--state", "paused"}, "ana          30  paused"},
		{[]string{"show", job.GetId()}, "paused:    20"},
		{[]string{"resume", job.GetId(), "--reason", "back"}, "job " + job.GetId() + ": queued (back)\n"},
		{[]string{"retry", job.GetId()}, "job " + job.GetId() + ": 0 batches are tried again\n"},
		{[]string{"show", job.GetId()[:len("job-00000001-")+1]}, "state:     queued"},
		{[]string{"show", "--last"}, "state:     queued"},
		{[]string{"pause", "job-1", "--reason", "tea"}, "job " + job.GetId() + ": paused (tea)\n"},
		{[]string{"list", "--name", "M"}, job.GetId()},
		{[]string{"resume", "--last", "--reason", "done"}, "job " + job.GetId() + ": queued (done)\n"},
		{[]string{"owners"}, "ana         3        1  1 of 2  7 of 100        0 B"},
		{[]string{"cancel", job.GetId(), "--reason", "done"}, "job " + job.GetId() + ": cancelled (done)\n"},
		{[]string{"delete", job.GetId(), job.GetId()}, "job " + job.GetId() + ": deleted\njob " + job.GetId() + ": deleted\n"},
	} {
		if got := command(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("tilth jobs %s says\n%swant %q", strings.Join(c.args, " "), got, c.want)
		}
	}
	if rows := command("list", "--name", "x"); strings.Contains(rows, job.GetId()) {
		t.Errorf("jobs named x are\n%s", rows)
	}
	var owners []ownerRow
	if err := json.Unmarshal([]byte(command("owners", "--json")), &owners); err != nil || len(owners) != 0 {
		t.Errorf("owners are %v, %v", owners, err)
	}
	if _, err := f.client.Submit(ctx, smallSpec("eva", 101)); err == nil || !strings.Contains(err.Error(), "spec.priority: is 101, not 1 to 100") {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if _, err := f.client.Submit(ctx, smallSpec("eva", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if id, err := f.client.FindJob(ctx, "job-3"); err != nil || !strings.HasPrefix(id, "job-00000003-") {
		t.Errorf("job-3 is %q, %v", id, err)
	}
	if id, err := f.client.FindJob(ctx, "job-0"); err != nil || id != "job-0" {
		t.Errorf("job-0 is %q, %v, although no job has that number", id, err)
	}
	want := `submit the job: owner "eva" has 2 open jobs, at most 2 are allowed: wait for one to end, or cancel one`
	if _, err := f.client.Submit(ctx, smallSpec("eva", 0)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
