package tracker_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// passing submits an owner's job and cancels it.
func (f *trackerFarm) passing(request string, s *tilthv1.JobSpec) (id string) {
	f.Helper()
	id = f.submit(request, s).GetId()
	must[*tilthv1.CancelJobResponse](f)(f.jobs.CancelJob(f.Context(), &tilthv1.CancelJobRequest{JobId: id, Reason: "it is enough"}))
	return id
}

// watched returns the error at the end of a job's log.
func (f *trackerFarm) watched(id string) error {
	f.Helper()
	stream, err := f.jobs.WatchJob(f.Context(), &tilthv1.WatchJobRequest{JobId: id})
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

// stored stops the tracker, reads its records file, and restarts it.
func (f *trackerFarm) stored(read func(db *bolt.DB)) {
	f.Helper()
	f.stop()
	db := must[*bolt.DB](f)(bolt.OpenReadOnly(filepath.Join(f.dir, "records.db"), bolt.Options{}))
	read(db)
	if err := db.Close(); err != nil {
		f.Error(err)
	}
	f.start()
}

func TestEndedJobsAreKeptInNumbersAndTheRestIsSaid(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Keep: policy.Retention{Jobs: 3}, Registerer: registry})
	open := f.submit("open", specOf("ana", 1)).GetId()
	var ids []string
	for n := range 10 {
		ids = append([]string{f.passing(fmt.Sprint(n), specOf("ana", 1))}, ids...)
		f.passing(fmt.Sprint(n), specOf("eva", 1))
	}
	for n := range 2 {
		list := must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{}))
		if len(list.GetJobs()) != 7 || list.GetMissing() != 14 {
			t.Errorf("%d jobs are listed and %d missing, want 7 and 14", len(list.GetJobs()), list.GetMissing())
		}
		for _, id := range append([]string{open}, ids[:3]...) {
			f.job(id)
		}
		wantStatus(t, f.watched(ids[3]), codes.NotFound, "", "does not exist")
		if n == 0 {
			if got := gauge(t, registry, "jobs_dropped_total"); got != 14 {
				t.Errorf("%v dropped jobs are counted", got)
			}
			f.cfg.Registerer = nil
			f.restart()
		}
	}
	if got := f.owners()[0]; got.GetEndedJobs() != 3 || got.GetKeepJobs() != 3 {
		t.Errorf("of ana's ended jobs are kept %d of %d", got.GetEndedJobs(), got.GetKeepJobs())
	}
	// The request of a deleted job creates a new one.
	if again := f.submit("0", specOf("ana", 1)).GetId(); again <= ids[0] {
		t.Errorf("a dropped job's request made %s", again)
	}
	// The retention limits of another tracker apply to existing jobs.
	f.cfg.Keep.Jobs = 1
	f.restart()
	if got := f.jobPages(100); len(got) != 4 {
		t.Errorf("%v are kept, want the open jobs and one of each owner", got)
	}
}

// TestOwnerHasNoMoreStoredThanItMay is a regression test: a loop of immediately cancelled jobs grew the file to 2
// GB, which compaction did not shrink.
func TestOwnerHasNoMoreStoredThanItMay(t *testing.T) {
	f := newFarm(t, tracker.Config{Shares: policy.Shares{Default: policy.Share{StoredBytes: 5 << 20}}})
	large := func() *tilthv1.JobSpec {
		s := specOf("ana", 1)
		s.Tasks[0].Workload = bytes.Repeat([]byte{'x'}, 1<<20)
		s.Tasks[0].WorkloadDigest = records.Digest(s.GetTasks()[0].GetWorkload())
		return s
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(f.dir, "records.db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for n := range 60 {
		f.passing(fmt.Sprint(n), large())
	}
	if got := f.jobPages(100); len(got) != 4 {
		t.Errorf("%d jobs of 1 MiB are kept in 5 MiB", len(got))
	}
	// bbolt grows a file by 16 MiB at a time, and 60 MiB were written.
	if got := size(); got > 48<<20 {
		t.Errorf("the file has %d bytes", got)
	}
	for n := range 4 {
		f.submit(fmt.Sprint("open ", n), large())
	}
	for range 2 {
		wantStatus(t, f.trySubmit("one more", large()), codes.ResourceExhausted, wire.ReasonQuota, `owner "ana" has open jobs of 419`)
		if got := f.jobPages(100); len(got) != 4 {
			t.Errorf("%d jobs are there, want the open ones: those that had ended made room", len(got))
		}
		f.restart()
	}
	f.submit("eva's", specOf("eva", 1))
}

func TestEndedJobsAreKeptForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimedAs(t, tracker.Config{Keep: policy.Retention{Age: 20 * time.Minute}})
		defer func() { f.stop() }()
		id := f.submit()
		pass(30 * time.Minute)
		must[*tilthv1.CancelJobResponse](t)(f.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id}))
		f.sleepOver(15 * time.Minute)
		must[*tilthv1.GetJobResponse](t)(f.GetJob(t.Context(), &tilthv1.GetJobRequest{JobId: id}))
		f.sleepOver(5 * time.Minute)
		_, err := f.GetJob(t.Context(), &tilthv1.GetJobRequest{JobId: id})
		wantStatus(t, err, codes.NotFound, "", "does not exist")
	})
}

// TestJobIsDeletedWithItsEventsAndWithoutItsRecords is a regression test: jobs could not be deleted, so one that
// broke a listing broke it forever.
func TestJobIsDeletedWithItsEventsAndWithoutItsRecords(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	remove := func(id string) error {
		_, err := f.jobs.DeleteJob(t.Context(), &tilthv1.DeleteJobRequest{JobId: id})
		return err
	}
	id := f.submit("r", spec("conv")).GetId()
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a")
	f.reportBuild(f.buildReport(f.mustLease(f.builder()), "a"))
	wantStatus(t, remove(id), codes.FailedPrecondition, "", "has not ended: cancel it first")
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id}))
	for range 2 {
		if err := remove(id); err != nil {
			t.Error(err)
		}
		wantStatus(t, f.watched(id), codes.NotFound, "", "does not exist")
		f.restart()
	}
	wantStatus(t, remove("job-00000099"), codes.NotFound, "", "does not exist")
	wantStatus(t, remove("garbage"), codes.NotFound, "", "does not exist")
	f.stored(func(db *bolt.DB) {
		if events, err := db.Events(id, 1, 10); err != nil || len(events) > 0 {
			t.Errorf("%d events are left, %v", len(events), err)
		}
		left := 0
		if err := db.List(t.Context(), "", "", func(*tilthv1.Record) error { left++; return nil }); err != nil || left != 1 {
			t.Errorf("%d records are left, %v, want that of a", left, err)
		}
	})
	if again := f.submit("r", spec("conv")).GetId(); again == id {
		t.Error("its request is answered with it")
	}
}
