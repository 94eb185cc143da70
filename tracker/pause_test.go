package tracker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

func (f *timed) pause(id string) *tilthv1.Job {
	f.t.Helper()
	return must[*tilthv1.PauseJobResponse](f.t)(f.PauseJob(f.t.Context(), &tilthv1.PauseJobRequest{JobId: id, Reason: "lunch"})).GetJob()
}

func (f *timed) resume(id string) *tilthv1.Job {
	f.t.Helper()
	return must[*tilthv1.ResumeJobResponse](f.t)(f.ResumeJob(f.t.Context(), &tilthv1.ResumeJobRequest{JobId: id})).GetJob()
}

func TestPausedJobIsGrantedToNobody(t *testing.T) {
	for name, restart := range map[string]bool{"while the tracker lives": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimed(t)
				defer func() { f.stop() }()
				id := f.submitOf("ana", "job", 0, 3)
				builder := f.joinAs("builder", builderKind)
				held := f.build(builder)
				for range 2 { // the first answer was lost
					if j := f.pause(id); j.GetState() != tilthv1.JobState_JOB_STATE_PAUSED || j.GetReason() != "lunch" || j.GetPausedAt() == nil {
						t.Errorf("paused: %v", j)
					}
				}
				if restart {
					f.stop()
					f.start()
				}
				tuner := f.joinAs("another tuner", tunerKind)
				if f.build(builder) != nil || f.lease(tuner, 0) != nil {
					t.Error("something of it was granted")
				}
				f.refused(held) // work in progress ends and counts
				f.beat(builder, time.Minute)
				if j := f.jobOf(id); j.GetProgress()[0].GetTrials() != 1 {
					t.Errorf("what was in flight did not count: %v", j.GetProgress())
				}
				for range 2 {
					j := f.resume(id)
					if j.GetState() != tilthv1.JobState_JOB_STATE_QUEUED || j.GetPausedAt() != nil || j.GetPaused().AsDuration() != time.Minute {
						t.Errorf("resumed: %v", j)
					}
				}
				if f.lease(f.joinAs("another tuner", tunerKind), 0) == nil {
					t.Error("no tuner is given the job")
				}
				for n := range 2 {
					w := f.build(builder)
					if got := string(w.GetBuild().GetCandidates()[0].GetTrace()); got != fmt.Sprint("job", n+1) {
						t.Errorf("after the pause comes %s", got)
					}
				}
			})
		})
	}
}

func TestFailedWorkOfAPausedJobIsRetriedOnResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		id := f.submitOf("ana", "job", 0, 1)
		builder := f.joinAs("builder", builderKind)
		held := f.build(builder)
		f.pause(id)
		f.broken(held)
		f.beat(builder, 10*time.Second)
		if f.build(builder) != nil {
			t.Error("it was granted while the job is paused")
		}
		f.resume(id)
		if f.build(builder) == nil {
			t.Error("it is forgotten")
		}
	})
}

func TestTunerThatLosesItsJobToAPauseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		id := f.submit()
		session := f.join("tuner")
		lease := f.lease(session, 0)
		f.pause(id)
		if dropped := f.beat(session, time.Second, lease); dropped != 1 {
			t.Errorf("%d leases were dropped, want 1", dropped)
		}
		_, err := f.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Candidates: candidates("a")})
		wantStale(t, err)
	})
}

func TestOnlyAJobThatGoesOnIsPaused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r", spec("conv")).GetId()
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: job}))
	for id, code := range map[string]codes.Code{job: codes.FailedPrecondition, "job-9": codes.NotFound} {
		_, pause := f.jobs.PauseJob(t.Context(), &tilthv1.PauseJobRequest{JobId: id})
		_, resume := f.jobs.ResumeJob(t.Context(), &tilthv1.ResumeJobRequest{JobId: id})
		_, retry := f.jobs.RetryDeadLetters(t.Context(), &tilthv1.RetryDeadLettersRequest{JobId: id})
		for _, err := range []error{pause, resume, retry} {
			if status.Code(err) != code {
				t.Errorf("%s: got %v, want %v", id, err, code)
			}
		}
	}
}
