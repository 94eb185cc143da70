package tracker_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"
	"google.golang.org/grpc/codes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// flip flips a bit of a bucket's first row with a key prefix, in a stopped farm.
func (f *trackerFarm) flip(bucket, begin string) {
	f.Helper()
	file := must[*bbolt.DB](f)(bbolt.Open(f.file(), 0o600, nil))
	err := file.Update(func(tx *bbolt.Tx) error {
		rows := tx.Bucket([]byte(bucket))
		k, v := rows.Cursor().Seek([]byte(begin))
		if !bytes.HasPrefix(k, []byte(begin)) {
			f.Fatalf("%s has no row of %s", bucket, begin)
		}
		v = bytes.Clone(v)
		v[len(v)/2] ^= 4
		return rows.Put(k, v)
	})
	if err != nil {
		f.Fatal(err)
	}
	if err := file.Close(); err != nil {
		f.Fatal(err)
	}
}

// TestDamagedJobEndsAndTheOthersGoOn is a regression test: an unreadable row prevented the tracker's start.
func TestDamagedJobEndsAndTheOthersGoOn(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	ids := map[string]string{}
	for _, bucket := range []string{"jobs", "specs", "progress", "batches", "events", "none"} {
		ids[bucket] = f.submit(bucket, spec(bucket)).GetId()
		lease := f.mustLease(f.join("tuner-"+bucket, tilthv1.AgentKind_AGENT_KIND_TUNER)).GetLease()
		f.propose(lease, 0, 0, "a "+bucket)
	}
	f.stop()
	for bucket, id := range ids {
		switch bucket {
		case "none":
		case "events": // the batch's proposal with its candidates
			f.flip(bucket, id+"\x00\x00\x00\x00\x00\x00\x00\x00\x03")
		default:
			f.flip(bucket, id)
		}
	}
	f.start()
	list := must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{}))
	for bucket, id := range ids {
		want := tilthv1.JobState_JOB_STATE_FAILED
		if bucket == "none" {
			want = tilthv1.JobState_JOB_STATE_RUNNING
		}
		for _, j := range list.GetJobs() {
			if j.GetId() == id && (j.GetState() != want || bucket != "none" && !strings.Contains(j.GetReason(), "damaged")) {
				t.Errorf("the job with damage in %s is %v: %s", bucket, j.GetState(), j.GetReason())
			}
		}
	}
	if len(list.GetJobs()) != len(ids) {
		t.Errorf("%d jobs are listed", len(list.GetJobs()))
	}
	_, err := f.jobs.GetJob(t.Context(), &tilthv1.GetJobRequest{JobId: ids["specs"]})
	wantStatus(t, err, codes.Internal, "", `row "`+ids["specs"]+`" of specs`)
	f.restart()
}

// damagedBest returns a stopped farm with three records of one candidate, the best of which is damaged.
func damagedBest(t *testing.T) *trackerFarm {
	t.Helper()
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	builder, runner := f.builder(), f.runner()
	search := f.mustLease(f.tuner()).GetLease()
	for n, latency := range []float64{0.5, 0.125, 0.25} { // of one candidate; the last one counts
		w := f.proposeAndLease(search, builder, runner, uint64(n), 0)
		f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], latency))
	}
	f.stop()
	file := must[*bbolt.DB](t)(bbolt.Open(f.file(), 0o600, nil))
	var best string
	if err := file.View(func(tx *bbolt.Tx) error {
		_, key := tx.Bucket([]byte("best")).Cursor().First()
		best = string(key[:len(key)-4])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	f.flip("records", best)
	return f
}

// oneSetAside checks that one damaged record was counted and set aside.
func oneSetAside(t *testing.T, f *trackerFarm, registry *prometheus.Registry) {
	t.Helper()
	if n := value(t, registry, "tilth_tracker_store_damaged_rows_total"); n != 1 {
		t.Errorf("%v damaged rows are counted", n)
	}
	f.stop()
	report := must[*records.Report](t)(bolt.Verify(t.Context(), f.file()))
	if report.Damaged != 0 || report.SetAside != 1 {
		t.Errorf("afterwards it has %+v", report)
	}
	f.cfg.Registerer = nil // metrics can only be registered once
	f.start()
}

// TestDamagedBestGivesWayToTheNext is a regression test: a flipped bit turned 12.3 ms into 48 µs, which was served
// as the best.
func TestDamagedBestGivesWayToTheNext(t *testing.T) {
	registry, f := prometheus.NewRegistry(), damagedBest(t)
	f.cfg.Registerer = registry
	f.start() // without scrubbing: the first read finds the damage
	task := spec("conv").GetTasks()[0]
	r := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{
		Target: "cpu-1", WorkloadDigests: []string{task.GetWorkloadDigest()},
	}))
	if got := r.GetRecords(); len(got) != 1 || got[0].GetMeasurement().GetLatencySeconds() != 0.125 {
		t.Errorf("the best is %v", got)
	}
	if all := f.allRecords(); len(all) != 2 {
		t.Errorf("%d records, want the two that are whole", len(all))
	}
	oneSetAside(t, f, registry)
}

// TestScrubbingSetsADamagedRecordAside checks that scrubbing finds damage in a record that is never read.
func TestScrubbingSetsADamagedRecordAside(t *testing.T) {
	registry, f := prometheus.NewRegistry(), damagedBest(t)
	f.cfg.Registerer, f.cfg.Artifacts.ScrubBytes = registry, 1<<30
	f.start()
	deadline := time.After(10 * time.Minute)
	for value(t, registry, "tilth_tracker_store_checked_timestamp_seconds") == 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatal("the scrubber does not come to its end")
		}
	}
	oneSetAside(t, f, registry)
}

// value returns a metric without labels.
func value(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
