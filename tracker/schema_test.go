package tracker_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// unpack installs an old records file for a farm's tracker.
func (f *trackerFarm) unpack(name string) {
	f.Helper()
	in, err := os.Open(filepath.Join("..", "records", "bolt", "testdata", name))
	if err != nil {
		f.Fatal(err)
	}
	defer in.Close()
	content := must[*gzip.Reader](f)(gzip.NewReader(in))
	out := must[*os.File](f)(os.Create(filepath.Join(f.dir, "records.db")))
	if _, err := io.Copy(out, content); err != nil {
		f.Fatal(err)
	}
	if err := out.Close(); err != nil {
		f.Fatal(err)
	}
}

// TestTrackerGoesOnFromOldFiles opens a file of the first tracker with this schema. It contains a finished job and an
// open one with a batch waiting for a builder and a half-measured batch, whose runner never returns.
func TestTrackerGoesOnFromOldFiles(t *testing.T) {
	f := &trackerFarm{TB: t, dir: t.TempDir(), cfg: tracker.Config{FirstRetry: -1}}
	f.unpack(fmt.Sprintf("schema-%d.db.gz", bolt.SchemaVersion))
	f.start()
	defer func() { f.stop() }()
	if got, want := describe(f.events("job-00000001", 1, 7)), "queued, running, proposed 0×3, trial 0.2 c 0, trial 0.0 a 0.5, trial 0.1 b 0.25, done"; got != want {
		t.Errorf("the done job's events are %s, want %s", got, want)
	}
	if f.submit("done", spec("conv")).GetId() != "job-00000001" || !strings.HasPrefix(f.submit("new", spec("conv")).GetId(), "job-00000003-") {
		t.Error("requests from before are not known, or numbers of jobs begin anew")
	}
	open := f.job("job-00000002")
	if p := open.GetProgress()[1]; open.GetState() != tilthv1.JobState_JOB_STATE_RUNNING || p.GetTrials() != 1 || p.GetBestSeconds() != 0.125 {
		t.Errorf("the open job is %v", open)
	}
	// Agents with leases join again, so their work is leased anew.
	tuner := f.mustLease(f.join("tuner-2", tilthv1.AgentKind_AGENT_KIND_TUNER))
	f.upload("object")
	builder := f.join("builder-2", tilthv1.AgentKind_AGENT_KIND_BUILDER)
	runner := f.join("runner-2", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	for range 2 {
		f.reportBuild(f.buildReport(f.mustLease(builder)))
		w := f.mustLease(runner)
		for _, c := range w.GetMeasure().GetCandidates() {
			f.report(w.GetLease(), ok(c, 1))
		}
	}
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{Lease: tuner.GetLease(), State: tilthv1.JobState_JOB_STATE_DONE}))
	if p := f.job("job-00000002").GetProgress(); p[0].GetTrials() != 1 || p[1].GetTrials() != 2 || p[1].GetBestSeconds() != 0.125 {
		t.Errorf("the job ended with %v", p)
	}
}
