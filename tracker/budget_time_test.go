package tracker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// staffed is a farm with an agent of each kind, and a job with a time budget leased to its tuner.
type staffed struct {
	*trackerFarm
	job                    *tilthv1.Job
	tuner, builder, runner string
	work                   *tilthv1.LeaseWorkResponse
	// heldBy has the processes that keep agents from their machines, by session.
	heldBy map[string]string
}

func newStaffed(t *testing.T, budget time.Duration) *staffed {
	f := &staffed{trackerFarm: newFarm(t, tracker.Config{})}
	f.tuner, f.builder, f.runner = f.trackerFarm.tuner(), f.trackerFarm.builder(), f.trackerFarm.runner()
	s := spec("conv")
	s.Budget = &tilthv1.Budget{Time: durationpb.New(budget)}
	f.job = f.submit("r1", s)
	f.work = f.mustLease(f.tuner)
	return f
}

// end stops the farm in its synctest bubble.
func (f *staffed) end() {
	f.stop()
	f.stop = func() {}
}

// live makes all agents report every second for a duration of fake time.
func (f *staffed) live(d time.Duration, sessions ...string) {
	f.Helper()
	if sessions == nil {
		sessions = []string{f.tuner, f.builder, f.runner}
	}
	for range d / time.Second {
		for _, s := range sessions {
			beat := &tilthv1.HeartbeatRequest{Session: s, MachineHeldBy: f.heldBy[s]}
			if s == f.tuner {
				beat.Leases = []*tilthv1.LeaseToken{f.work.GetLease()}
			}
			must[*tilthv1.HeartbeatResponse](f)(f.agents.Heartbeat(f.Context(), beat))
		}
		time.Sleep(time.Second) // fake time
	}
}

// wantSpent checks the spent time of the budget, within two ticks of the tracker.
func (f *staffed) wantSpent(want time.Duration) {
	f.Helper()
	j := f.trackerFarm.job(f.job.GetId())
	if got := j.GetTimeSpent().AsDuration(); got < want-2*time.Second || got > want+2*time.Second {
		f.Errorf("spent are %v, want %v; the job is %v", got, want, j)
	}
}

func (f *staffed) wantState(want tilthv1.JobState, reason string) {
	f.Helper()
	if j := f.trackerFarm.job(f.job.GetId()); j.GetState() != want || !strings.HasPrefix(j.GetReason(), reason) {
		f.Errorf("the job is %v, %q; want %v, %q", j.GetState(), j.GetReason(), want, reason)
	}
}

// inBubble runs a test with fake time.
func inBubble(t *testing.T, budget time.Duration, test func(f *staffed)) {
	synctest.Test(t, func(t *testing.T) {
		f := newStaffed(t, budget)
		defer f.end()
		test(f)
	})
}

const (
	running = tilthv1.JobState_JOB_STATE_RUNNING
	failed  = tilthv1.JobState_JOB_STATE_FAILED
	done    = tilthv1.JobState_JOB_STATE_DONE
)

// TestBudgetOfTimeDoesNotRunWhileTheTrackerIsAway is a regression test: after an outage of a minute, a job with a
// budget of 20 s was done without a trial.
func TestBudgetOfTimeDoesNotRunWhileTheTrackerIsAway(t *testing.T) {
	inBubble(t, 20*time.Second, func(f *staffed) {
		f.live(10 * time.Second)
		f.stop()
		time.Sleep(time.Minute)
		f.start()
		f.live(5 * time.Second)
		f.wantState(running, "")
		f.live(30 * time.Second)
		f.wantState(failed, "time spent before the first trial was measured")
		j := f.trackerFarm.job(f.job.GetId())
		lived := j.GetEndedAt().AsTime().Sub(j.GetStartedAt().AsTime())
		if lived < 78*time.Second || lived > 92*time.Second { // 60 s do not count, and the time lost by the stop counts again
			f.Errorf("the job lived for %v", lived)
		}
	})
}

// TestBudgetsStopWhileNothingCanRun checks that the time stops without a device, a builder or a tuner.
func TestBudgetsStopWhileNothingCanRun(t *testing.T) {
	for name, take := range map[string]func(f *staffed){
		"the device is cordoned": func(f *staffed) { cordon(f, wired{f.trackerFarm}, "runner", "", 0) },
		"the builder left":       func(f *staffed) { f.leave(f.builder) },
		"the device left":        func(f *staffed) { f.leave(f.runner) },
		"the tuner left":         func(f *staffed) { f.leave(f.tuner) },
		"the job is paused": func(f *staffed) {
			must[*tilthv1.PauseJobResponse](f)(f.jobs.PauseJob(f.Context(), &tilthv1.PauseJobRequest{JobId: f.job.GetId()}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 30*time.Second, func(f *staffed) {
				f.live(10 * time.Second)
				take(f)
				present, sessions := []string{}, map[string]string{"tuner": f.tuner, "builder": f.builder, "runner": f.runner}
				for _, a := range must[*tilthv1.ListAgentsResponse](f)(f.agents.ListAgents(f.Context(), &tilthv1.ListAgentsRequest{})).GetAgents() {
					if a.GetState() != tilthv1.AgentState_AGENT_STATE_GONE {
						present = append(present, sessions[a.GetSpec().GetName()])
					}
				}
				f.live(time.Minute, present...)
				f.wantSpent(10 * time.Second)
				if f.trackerFarm.job(f.job.GetId()).GetEndedAt() != nil {
					f.Error("the job has ended")
				}
			})
		})
	}
}

// TestTunerThatIsSilentSpendsNoTime, except for half a lease timeout in which it may still be alive.
func TestTunerThatIsSilentSpendsNoTime(t *testing.T) {
	inBubble(t, 10*time.Minute, func(f *staffed) {
		f.live(10 * time.Second)
		f.live(25*time.Second, f.builder, f.runner)
		f.wantSpent(25 * time.Second)
	})
}

// TestBudgetStandsStillWhileAnAgentWaitsForItsMachine covers each kind of agent, and the reason that the job shows.
func TestBudgetStandsStillWhileAnAgentWaitsForItsMachine(t *testing.T) {
	for kind, of := range map[string]func(f *staffed) string{
		"tuner": func(f *staffed) string { return f.tuner }, "builder": func(f *staffed) string { return f.builder },
		"runner": func(f *staffed) string { return f.runner },
	} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, 30*time.Second, func(f *staffed) {
				f.live(10 * time.Second)
				f.heldBy = map[string]string{of(f): "process 42 (tilth compare) since 2026-11-29T16:00:00Z"}
				f.live(time.Minute)
				f.wantSpent(10 * time.Second)
				w := f.trackerFarm.job(f.job.GetId()).GetWait()
				if w.GetReason() != tilthv1.WaitReason_WAIT_REASON_MACHINE || !strings.Contains(w.GetMessage(), kind+" waits for its machine, held by process 42 (tilth compare) since 2026-") {
					f.Errorf("the job waits for %v", w)
				}
				f.heldBy = nil
				f.live(5 * time.Second)
				f.wantSpent(15 * time.Second)
			})
		})
	}
}

func (f *trackerFarm) leave(session string) {
	f.Helper()
	must[*tilthv1.LeaveResponse](f)(f.agents.Leave(f.Context(), &tilthv1.LeaveRequest{Session: session}))
}

// TestSuspensionDoesNotConsumeBudgets covers a stopped process and a suspended machine.
func TestSuspensionDoesNotConsumeBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64 // nanoseconds
		f := &staffed{trackerFarm: newFarm(t, tracker.Config{Clock: func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }, LeaseTimeout: time.Hour})}
		defer f.end()
		f.tuner, f.builder, f.runner = f.trackerFarm.tuner(), f.trackerFarm.builder(), f.trackerFarm.runner()
		s := spec("conv")
		s.Budget = &tilthv1.Budget{Time: durationpb.New(30 * time.Second)}
		f.job = f.submit("r1", s)
		f.work = f.mustLease(f.tuner)
		f.live(10 * time.Second)
		slept.Store(int64(10 * time.Minute))
		f.live(5 * time.Second)
		f.wantState(running, "")
		f.wantSpent(16 * time.Second)
	})
}

// TestTimeOfABudgetEndsTheJobThatMeasured checks that the tracker itself ends the job.
func TestTimeOfABudgetEndsTheJobThatMeasured(t *testing.T) {
	inBubble(t, 10*time.Second, func(f *staffed) {
		f.propose(f.work.GetLease(), 0, 0, "a")
		f.reportBuild(f.buildReport(f.mustLease(f.builder)))
		w := f.mustLease(f.runner)
		f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 1))
		f.live(12 * time.Second)
		f.wantState(done, "time spent")
		f.wantSpent(10 * time.Second)
		f.restart()
		f.wantSpent(10 * time.Second)
	})
}

// TestTunerIsToldWhatIsLeft checks that an older tuner, which counts from the job's start, gets the same result.
func TestTunerIsToldWhatIsLeft(t *testing.T) {
	inBubble(t, 30*time.Second, func(f *staffed) {
		f.live(10 * time.Second)
		f.leave(f.tuner)
		f.live(20*time.Second, f.builder, f.runner)
		search := f.mustLease(f.trackerFarm.tuner()).GetSearch()
		if left := search.GetTimeLeft().AsDuration(); left < 19*time.Second || left > 21*time.Second {
			f.Errorf("left are %v", left)
		}
		old := time.Until(search.GetJob().GetStartedAt().AsTime().Add(search.GetJob().GetPaused().AsDuration() + 30*time.Second))
		if old < 19*time.Second || old > 21*time.Second {
			f.Errorf("a tuner of an older version ends it in %v", old)
		}
	})
}

// TestJobOfAnOlderTrackerGoesOnWithWhatItHadLeft covers jobs without a stored spent time.
func TestJobOfAnOlderTrackerGoesOnWithWhatItHadLeft(t *testing.T) {
	inBubble(t, time.Minute, func(f *staffed) {
		f.live(20 * time.Second)
		f.propose(f.work.GetLease(), 0, 0, "a") // its last event
		f.end()
		db := must[*bolt.DB](f)(bolt.Open(f.dir+"/records.db", bolt.Options{}))
		row := must[*storev1.JobRow](f)(db.JobRow(f.job.GetId()))
		row.GetJob().TimeSpent = nil
		w := &records.Write{}
		w.PutJob(row)
		if err := db.Commit(w).Wait(f.Context()); err != nil {
			f.Fatal(err)
		}
		if err := db.Close(); err != nil {
			f.Fatal(err)
		}
		time.Sleep(time.Hour)
		f.start()
		f.live(10 * time.Second)
		f.wantSpent(30 * time.Second)
	})
}
