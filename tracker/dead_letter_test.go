package tracker_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/state"
)

func (f *timed) retry(id string, batches ...string) []string {
	f.t.Helper()
	r := must[*tilthv1.RetryDeadLettersResponse](f.t)(f.RetryDeadLetters(f.t.Context(), &tilthv1.RetryDeadLettersRequest{JobId: id, BatchIds: batches}))
	return r.GetBatchIds()
}

func TestDeadLettersAreTriedAgainWhenAsked(t *testing.T) {
	for name, restart := range map[string]bool{"while the tracker lives": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimedAs(t, tracker.Config{MaxAttempts: 1})
				defer func() { f.stop() }()
				id := f.submitOf("ana", "job", 0, 3)
				builder := f.joinAs("builder", builderKind)
				f.broken(f.build(builder))
				w := f.build(builder)
				f.broken(w)
				f.refused(f.build(builder))
				letters := f.jobOf(id).GetDeadLetters()
				if len(letters) != 2 || letters[0].GetAttempts() != 1 || letters[0].GetAgents()[0] != "builder" {
					t.Fatalf("dead letters are %v", letters)
				}
				if restart {
					f.stop()
					f.start()
				}
				first, second := letters[0].GetBatchId(), letters[1].GetBatchId()
				if got := fmt.Sprint(f.retry(id, second, "no such batch")); got != "["+second+"]" {
					t.Errorf("retried %s", got)
				}
				if got := fmt.Sprint(f.retry(id)); got != "["+first+"]" {
					t.Errorf("retried %s", got)
				}
				if got := f.retry(id); len(got) != 0 {
					t.Errorf("retried %v", got)
				}
				if restart {
					f.stop()
					f.start()
				}
				// The report under the old lease is still known, and the next lease has another number.
				f.broken(w)
				for range 2 {
					again := f.build(builder)
					if again.GetLease().GetAttempt() != 2 {
						t.Errorf("granted %v", again.GetLease())
					}
					f.refused(again)
				}
				j := f.jobOf(id)
				if j.GetProgress()[0].GetTrials() != 3 || len(j.GetDeadLetters()) != 0 {
					t.Errorf("the job came to %v", j)
				}
			})
		})
	}
}

func TestOnlyWhatIsNotRecordedIsTriedAgain(t *testing.T) {
	f := newFarm(t, tracker.Config{MaxAttempts: 1})
	job := f.submit("r", spec("conv")).GetId()
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a", "b", "c")
	builder := f.builder()
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	runner := f.runner()
	w := f.mustLease(runner)
	must[*tilthv1.ReportMeasurementsResponse](t)(f.measure.ReportMeasurements(t.Context(), &tilthv1.ReportMeasurementsRequest{
		Lease: w.GetLease(), Measurements: []*tilthv1.Measurement{ok(w.GetMeasure().GetCandidates()[1], 1)},
		InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: "the board is off",
	}))
	must[*tilthv1.RetryDeadLettersResponse](t)(f.jobs.RetryDeadLetters(t.Context(), &tilthv1.RetryDeadLettersRequest{JobId: job}))
	build := f.mustLease(builder)
	if got := build.GetBuild().GetCandidates(); len(got) != 2 || string(got[0].GetTrace()) != "a" || string(got[1].GetTrace()) != "c" {
		t.Fatalf("built again: %v", got)
	}
	f.reportBuild(f.buildReport(build))
	w = f.mustLease(runner)
	f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 1), ok(w.GetMeasure().GetCandidates()[1], 2))
	events := f.events(job, 1, 8)
	want := "queued, running, proposed 0×3, trial 0.1 b 1, dead ERROR_CLASS_DEVICE_INFRA, retried 2, trial 0.0 a 1, trial 0.2 c 2"
	if got := describe(events); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
	if j := f.job(job); len(j.GetDeadLetters()) != 0 {
		t.Errorf("dead letters are left: %v", j.GetDeadLetters())
	}
}

// TestDeadLetterFromAnOlderTrackerIsPassedOver covers batches without stored candidates, which cannot be retried.
func TestDeadLetterFromAnOlderTrackerIsPassedOver(t *testing.T) {
	f := newFarm(t, tracker.Config{MaxAttempts: 1})
	job := f.submit("r", spec("conv")).GetId()
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a")
	w := f.mustLease(f.builder())
	must[*tilthv1.ReportBuildResponse](t)(f.build.ReportBuild(t.Context(), &tilthv1.ReportBuildRequest{
		Lease: w.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA,
	}))
	f.stop()
	db := must[*bolt.DB](t)(bolt.Open(filepath.Join(f.dir, "records.db"), bolt.Options{}))
	var old records.Write
	old.CloseBatch(w.GetBuild().GetBatchId(), &storev1.BatchRow{JobId: job, Stage: storev1.Stage_STAGE_CLOSED})
	if err := errors.Join(db.Commit(&old).Wait(t.Context()), db.Close()); err != nil {
		t.Fatal(err)
	}
	f.start()
	r := must[*tilthv1.RetryDeadLettersResponse](t)(f.jobs.RetryDeadLetters(t.Context(), &tilthv1.RetryDeadLettersRequest{JobId: job}))
	if len(r.GetBatchIds()) != 0 || len(r.GetJob().GetDeadLetters()) != 1 {
		t.Errorf("retried %v, left %v", r.GetBatchIds(), r.GetJob().GetDeadLetters())
	}
}

// TestJobWithTooManyDeadLettersFails is a regression test: a job whose batches all failed continued forever, and its
// row grew with each dead letter.
func TestJobWithTooManyDeadLettersFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimedAs(t, tracker.Config{MaxAttempts: 1, Limits: state.Limits{JobBatches: 110}})
		defer func() { f.stop() }()
		id := f.submitOf("ana", "job", 0, 110)
		for n := range 100 { // each fails one of them, so none is to blame
			f.broken(f.build(f.joinAs(fmt.Sprint("builder ", n), builderKind)))
		}
		j := f.jobOf(id)
		if j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || len(j.GetDeadLetters()) != 100 {
			t.Errorf("the job is %v (%s) with %d dead letters", j.GetState(), j.GetReason(), len(j.GetDeadLetters()))
		}
	})
}
