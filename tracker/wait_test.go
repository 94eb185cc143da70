package tracker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// wantWait checks why a job waits, in every response that contains it.
func (f *trackerFarm) wantWait(id string, reason tilthv1.WaitReason, nothingCanRun bool, parts ...string) {
	f.Helper()
	w := f.job(id).GetWait()
	if w.GetReason() != reason || w.GetNothingCanRun() != nothingCanRun {
		f.Fatalf("the job waits for %v, want %v", w, reason)
	}
	for _, part := range parts {
		if !strings.Contains(w.GetMessage(), part) {
			f.Errorf("the job waits, %s; want %q in it", w.GetMessage(), part)
		}
	}
	listed := must[*tilthv1.ListJobsResponse](f)(f.jobs.ListJobs(f.Context(), &tilthv1.ListJobsRequest{})).GetJobs()
	if len(listed) == 0 || listed[0].GetWait().GetReason() != reason {
		f.Errorf("listed are %v, want one that waits for %v", listed, reason)
	}
}

const nothing = tilthv1.WaitReason_WAIT_REASON_UNSPECIFIED

// TestJobSaysWhyItWaits checks the reason, its explanation, the time limit and the remedy of every kind of wait.
func TestJobSaysWhyItWaits(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	j := f.submit("r1", spec("conv"))
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, true, "no device of class x86 is joined: start one with 'tilth runner'")
	other := agentSpec("board", tilthv1.AgentKind_AGENT_KIND_RUNNER)
	other.DeviceClasses[0].Name = "arm"
	must[*tilthv1.JoinResponse](t)(f.agents.Join(t.Context(), &tilthv1.JoinRequest{Spec: other}))
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, true, "no device of class x86 is joined (board has arm)")
	runner := f.runner()
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_BUILDER, true, "no builder with clang-19 is joined", "'tilth builder'")
	builder := f.builder()
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_TUNER, true, "no tuner with random is joined", "'tilth tuner'")
	session := f.tuner()
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_TURN, false, "queued for a tuner with random")
	tuner := f.mustLease(session).GetLease()
	f.wantWait(j.GetId(), nothing, false)

	cordon(t, wired{f}, "runner", "a look at the fan", time.Hour)
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_CORDONED, true, "the only device of class x86 gets no work: runner is cordoned since",
		"by anna until", "a look at the fan", "'tilth devices uncordon runner'")
	uncordon(t, wired{f}, "runner")
	f.wantWait(j.GetId(), nothing, false)

	f.propose(tuner, 0, 0, "a")
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_TURN, false, "queued for a builder with clang-19")
	work := f.mustLease(builder)
	f.wantWait(j.GetId(), nothing, false)
	f.reportBuild(f.buildReport(work))
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_TURN, false, "queued for a device of class x86")
	f.mustLease(runner)
	f.wantWait(j.GetId(), nothing, false)
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: runner}))
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_NO_DEVICE, true, "runner is gone since")
	f.restart()
	f.runner()
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_SILENT, true, "builder has been silent since")
}

func TestJobSaysThatItsDeviceIsInQuarantine(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	j := f.measurable("r1")
	spare := f.spare()
	session := f.calibratingRunner().GetSession()
	f.calibrate(session, 5, 1)
	f.calibrate(session, 3, 1.2)
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_TURN, false)
	must[*tilthv1.LeaveResponse](t)(f.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: spare}))
	f.wantWait(j.GetId(), tilthv1.WaitReason_WAIT_REASON_QUARANTINED, true, "runner is quarantined since", "until",
		"20.0 % slower than its reference", "'tilth devices show runner'")
}

// TestJobSaysBehindWhomItWaits covers jobs of the same owner and of others.
func TestJobSaysBehindWhomItWaits(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.runner()
	f.builder()
	owned := func(request, owner string) *tilthv1.Job {
		s := spec("conv")
		s.Owner = owner
		return f.submit(request, s)
	}
	owned("r1", "ci")
	f.mustLease(f.tuner())
	owned("r2", "ana")
	owned("r3", "ana")
	last := owned("r4", "ci")
	f.wantWait(last.GetId(), tilthv1.WaitReason_WAIT_REASON_TURN, false,
		"queued for a tuner with random at position 3 of 3: in progress are 1 of ci; ahead of it are 2 of ana")
}

// TestJobSaysThatItsOwnerHasTooMuchWaitingForDevices covers builds held up by another job's artifacts.
func TestJobSaysThatItsOwnerHasTooMuchWaitingForDevices(t *testing.T) {
	f := newFarm(t, tracker.Config{Shares: policy.Shares{Owners: map[string]policy.Share{"ana": {ArtifactBytes: 10}}}})
	f.runner()
	builder := f.builder()
	f.submit("first", specOf("ana", 10))
	second := f.submit("second", specOf("ana", 10)).GetId()
	propose := func() {
		lease := f.mustLease(f.tuner())
		f.propose(lease.GetLease(), 0, 0, "a of "+lease.GetSearch().GetJob().GetId())
	}
	propose()
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	propose()
	f.wantWait(second, tilthv1.WaitReason_WAIT_REASON_QUOTA, false, `owner "ana" has 34 bytes of artifacts waiting for devices, of at most 10: builds resume`)
}

// TestJobSaysWhenWhatFailedIsTriedAgain also covers cooldowns of all agents for the job.
func TestJobSaysWhenWhatFailedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		id := f.submitOf("ana", "job", 0, 3)
		f.joinAs("board", tilthv1.AgentKind_AGENT_KIND_RUNNER)
		only := f.joinAs("only", builderKind)
		fail := func(times int, want tilthv1.WaitReason, part string) {
			t.Helper()
			for range times {
				f.broken(f.build(only))
			}
			if w := f.jobOf(id).GetWait(); w.GetReason() != want || !strings.Contains(w.GetMessage(), part) {
				t.Errorf("the job waits for %v, want %v, %q", w, want, part)
			}
		}
		fail(1, tilthv1.WaitReason_WAIT_REASON_RETRY, "failed on only and will be retried at "+time.Now().UTC().Format("2006-"))
		fail(2, tilthv1.WaitReason_WAIT_REASON_RESTING, "each builder with clang-19 is in cooldown for this job after failed leases; the last failure, on only: no compiler")
	})
}

// TestFarmSaysBeforehandWhatAJobWouldWaitFor checks the answer for a job that is not submitted.
func TestFarmSaysBeforehandWhatAJobWouldWaitFor(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	check := func(req *tilthv1.CheckFarmRequest) tilthv1.WaitReason {
		t.Helper()
		return must[*tilthv1.CheckFarmResponse](t)(f.jobs.CheckFarm(t.Context(), req)).GetWait().GetReason()
	}
	tune := &tilthv1.CheckFarmRequest{DeviceClass: "x86", Toolchain: "clang-19", Tuner: "random"}
	run := &tilthv1.CheckFarmRequest{DeviceClass: "x86", Run: true}
	if got := check(tune); got != tilthv1.WaitReason_WAIT_REASON_NO_DEVICE {
		t.Errorf("an empty farm has %v", got)
	}
	f.runner()
	f.builder()
	if got := check(tune); got != tilthv1.WaitReason_WAIT_REASON_NO_TUNER {
		t.Errorf("a farm without a tuner has %v", got)
	}
	f.tuner()
	if got := check(tune); got != nothing {
		t.Errorf("a whole farm has %v", got)
	}
	if got := check(run); got != tilthv1.WaitReason_WAIT_REASON_NO_DEVICE {
		t.Errorf("a farm whose device runs no packages has %v", got)
	}
	f.calibratingRunner()
	if got := check(run); got != nothing {
		t.Errorf("a farm whose device runs packages has %v", got)
	}
	run.Device = "another"
	if got := check(run); got != tilthv1.WaitReason_WAIT_REASON_NO_DEVICE {
		t.Errorf("a farm without the device asked for has %v", got)
	}
}

func TestMetricsCountJobsByWhatTheyWaitFor(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry})
	f.submit("r1", spec("conv"))
	f.submit("r2", spec("conv"))
	for _, line := range []string{`tilth_tracker_waiting_jobs{reason="no_device"} 2`, `tilth_tracker_waiting_jobs{reason="turn"} 0`} {
		if !strings.Contains(scrape(registry), line) {
			t.Errorf("metrics lack %q", line)
		}
	}
}

// TestPageShowsACordonedDeviceAsCordoned also checks that the page explains why a job waits.
func TestPageShowsACordonedDeviceAsCordoned(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry})
	f.measurable("r1")
	f.runner()
	page := func(path string) string {
		w := httptest.NewRecorder()
		f.tracker.HTTPHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil))
		return w.Body.String()
	}
	if got := page("/devices"); !strings.Contains(got, `>runner</a><td class="state ready">idle<td>`) {
		t.Errorf("the page is\n%s", got)
	}
	cordon(t, wired{f}, "runner", "a look at the fan", 0)
	got := page("/devices")
	if !strings.Contains(got, `>runner</a><td class="state cordoned">cordoned<td>`) || !strings.Contains(got, `<td class="why">a look at the fan</tr>`) {
		t.Errorf("the page is\n%s", got)
	}
	if got = page("/"); !strings.Contains(got, "the only device of class x86 gets no work") {
		t.Errorf("the page says nothing of why the job waits:\n%s", got)
	}
}

// TestWatchStreamsTheReasonForWaiting checks that each change is sent once, without an event.
func TestWatchStreamsTheReasonForWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, tracker.Config{})
		j := f.submit("r1", spec("conv"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // fake time
		defer cancel()
		stream := must[grpc.ServerStreamingClient[tilthv1.WatchJobResponse]](t)(
			f.jobs.WatchJob(ctx, &tilthv1.WatchJobRequest{JobId: j.GetId(), Status: true}))
		next := func() *tilthv1.JobStatus {
			t.Helper()
			for {
				if r := must[*tilthv1.WatchJobResponse](t)(stream.Recv()); r.GetStatus() != nil {
					return r.GetStatus()
				}
			}
		}
		if s := next(); s.GetWait().GetReason() != tilthv1.WaitReason_WAIT_REASON_NO_DEVICE || s.GetTimeRuns() {
			t.Errorf("the first status is %v", s)
		}
		since := f.job(j.GetId()).GetWait().GetSince().AsTime()
		time.Sleep(10 * time.Second) // fake time
		if w := f.job(j.GetId()).GetWait(); time.Since(w.GetSince().AsTime()) < 8*time.Second || w.GetSince().AsTime().Sub(since) > 2*time.Second {
			t.Errorf("it waits since %v, want since %v", w.GetSince().AsTime(), since)
		}
		f.runner()
		if s := next(); s.GetWait().GetReason() != tilthv1.WaitReason_WAIT_REASON_NO_BUILDER {
			t.Errorf("with a device the status is %v", s)
		}
		f.stop()
		f.stop = func() {}
	})
}
