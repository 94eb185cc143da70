package tracker_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// builds makes a builder build all work that it gets, and records the builder.
func (f *timed) builds(session, name string, by map[string]string) {
	f.t.Helper()
	for w := f.build(session); w != nil; w = f.build(session) {
		by[w.GetLease().GetSubject()] = name
		must[*tilthv1.ReportBuildResponse](f.t)(f.ReportBuild(f.t.Context(), &tilthv1.ReportBuildRequest{
			Lease:     w.GetLease(),
			Outcomes:  []*tilthv1.BuildOutcome{{Candidate: w.GetBuild().GetCandidates()[0].GetDigest(), Error: none}},
			Artifacts: []*tilthv1.ArtifactRef{{Role: "candidates", Digest: records.Digest(built), SizeBytes: uint64(len(built))}},
		}))
	}
}

// runs reports a batch's outcome on a device.
func (f *timed) runs(w *tilthv1.LeaseWorkResponse, starts bool) {
	f.t.Helper()
	r := &tilthv1.ReportMeasurementsRequest{Lease: w.GetLease()}
	if starts {
		r.Measurements = []*tilthv1.Measurement{ok(w.GetMeasure().GetCandidates()[0], 1)}
	} else {
		r.InfraError, r.InfraMessage = tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, "the harness does not start"
	}
	must[*tilthv1.ReportMeasurementsResponse](f.t)(f.ReportMeasurements(f.t.Context(), r))
}

// TestBrokenBuilderDoesNotCoolDownDevices is a regression test: all devices got cooldowns in turn, work of honest
// builders waited for up to five minutes, and half of the batches became dead letters.
func TestBrokenBuilderDoesNotCoolDownDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.keepBuilt()
		var jobs []string
		for _, name := range []string{"one", "two", "three"} {
			jobs = append(jobs, f.submitOf("ana", name, 0, 4))
		}
		by := map[string]string{}
		bad, good, runner := f.joinAs("bad", builderKind), f.joinAs("good", builderKind), f.joinAs("runner", tilthv1.AgentKind_AGENT_KIND_RUNNER)
		f.builds(bad, "bad", by)
		jobs = append(jobs, f.submitOf("eva", "honest", 0, 4))
		f.builds(good, "good", by)
		for range 120 {
			for w := f.build(runner); w != nil; w = f.build(runner) {
				f.runs(w, by[w.GetLease().GetSubject()] == "good")
			}
			a := f.agent("runner")
			if a.GetRestingUntil().AsTime().After(time.Now()) && !strings.HasPrefix(a.GetRestReason(), "from what agent bad builds") {
				t.Fatalf("the device rests: %s", a.GetRestReason())
			}
			f.beat(bad, time.Second)
			f.builds(bad, "bad", by)
			f.builds(good, "good", by)
		}
		for _, id := range jobs {
			if j := f.jobOf(id); j.GetProgress()[0].GetTrials() != 4 || len(j.GetDeadLetters()) != 0 {
				t.Errorf("%s has %d trials of 4, dead letters %v", id, j.GetProgress()[0].GetTrials(), j.GetDeadLetters())
			}
		}
	})
}

// TestJobWhoseBuildsAllFailEndsWithTheirError fails every build. The job must name the error while it waits, end, and
// still have it then.
func TestJobWhoseBuildsAllFailEndsWithTheirError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		id := f.submitOf("ana", "job", 0, 60)
		board, only := f.joinAs("board", tilthv1.AgentKind_AGENT_KIND_RUNNER), f.joinAs("only", builderKind)
		attempts := 0
		for minutes := 0; f.jobOf(id).GetEndedAt() == nil; minutes++ {
			if minutes == 60 {
				t.Fatalf("the job goes on after %d attempts in an hour", attempts)
			}
			for range 12 {
				f.beat(only, 5*time.Second)
				f.beat(board, time.Second)
				for w := f.build(only); w != nil; w = f.build(only) {
					attempts++
					f.broken(w)
				}
			}
			if w := f.jobOf(id).GetWait(); w != nil && !strings.Contains(w.GetMessage(), "no compiler") {
				t.Errorf("the job waits for %v", w)
			}
		}
		j := f.jobOf(id)
		if j.GetState() != tilthv1.JobState_JOB_STATE_FAILED || !strings.Contains(j.GetReason(), "failures in a row, the last on only: no compiler") {
			t.Errorf("the job is %v: %s", j.GetState(), j.GetReason())
		}
		last := j.GetFailures()[len(j.GetFailures())-1]
		if last.GetError() != tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA || last.GetMessage() != "no compiler" || int(last.GetCount()) != attempts {
			t.Errorf("after %d attempts, the job has the failures %v", attempts, j.GetFailures())
		}
	})
}
