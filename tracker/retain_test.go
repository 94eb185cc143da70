package tracker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
)

// sleepOver stops the tracker, advances the clock, and starts it for long enough to delete old jobs.
func (f *timed) sleepOver(d time.Duration) {
	f.t.Helper()
	f.stop()
	pass(d)
	f.start()
	pass(2 * time.Second)
}

func (f *timed) names() (names []string) {
	f.t.Helper()
	for _, a := range must[*tilthv1.ListAgentsResponse](f.t)(f.ListAgents(f.t.Context(), &tilthv1.ListAgentsRequest{})).GetAgents() {
		names = append(names, a.GetSpec().GetName())
	}
	return names
}

func TestAgentsThatAreGoneAreForgottenAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTimed(t)
		defer func() { f.stop() }()
		f.join("tuner")
		board := must[*tilthv1.JoinResponse](t)(f.Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec("board", tilthv1.AgentKind_AGENT_KIND_RUNNER)}))
		must[*tilthv1.LeaveResponse](t)(f.Leave(t.Context(), &tilthv1.LeaveRequest{Session: board.GetSession()}))
		pass(59 * time.Minute)
		if got := f.names(); len(got) != 2 {
			t.Errorf("after 59 minutes %v are known, want both", got)
		}
		pass(2 * time.Minute)
		if got := f.names(); len(got) != 1 || got[0] != "board" {
			t.Errorf("after an hour %v are known, want the board only", got)
		}
		f.sleepOver(5 * 24 * time.Hour)
		if got := f.names(); len(got) != 1 {
			t.Errorf("after five days %v are known, want the board", got)
		}
		f.sleepOver(2 * 24 * time.Hour)
		if got := f.names(); len(got) != 0 {
			t.Errorf("after a week %v are known", got)
		}
		f.sleepOver(0)
		if got := f.names(); len(got) != 0 {
			t.Errorf("after a restart %v are known again", got)
		}
	})
}

func TestClosedBatchesOfAnEndedJobAreForgottenAfterAWhile(t *testing.T) {
	for name, restarts := range map[string]bool{"in one life": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTimed(t)
				defer func() { f.stop() }()
				job := f.submit()
				lease := f.lease(f.join("tuner"), 0)
				b := must[*tilthv1.ProposeBatchResponse](t)(f.ProposeBatch(t.Context(), &tilthv1.ProposeBatchRequest{Lease: lease, Candidates: candidates("a")}))
				builder := must[*tilthv1.JoinResponse](t)(f.Join(t.Context(), &tilthv1.JoinRequest{Spec: agentSpec("builder", tilthv1.AgentKind_AGENT_KIND_BUILDER)}))
				w := must[*tilthv1.LeaseWorkResponse](t)(f.LeaseWork(t.Context(), &tilthv1.LeaseWorkRequest{Session: builder.GetSession()}))
				report := &tilthv1.ReportBuildRequest{Lease: w.GetLease(), Outcomes: []*tilthv1.BuildOutcome{{
					Candidate: w.GetBuild().GetCandidates()[0].GetDigest(), Error: tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR,
				}}}
				must[*tilthv1.ReportBuildResponse](t)(f.ReportBuild(t.Context(), report))
				must[*tilthv1.CancelJobResponse](t)(f.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: job}))
				pass(30 * time.Minute)
				must[*tilthv1.ReportBuildResponse](t)(f.ReportBuild(t.Context(), report)) // repetitions are recognised
				if restarts {
					f.sleepOver(0)
				}
				pass(61 * time.Minute)
				_, err := f.ReportBuild(t.Context(), report)
				wantStale(t, err)
				f.stop()
				db := must[*bolt.DB](t)(bolt.OpenReadOnly(f.path+"/r.db", bolt.Options{}))
				if _, err := db.ClosedBatch(b.GetBatchId()); !errors.Is(err, records.ErrNotFound) {
					t.Errorf("the closed batch is still there: %v", err)
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
				f.start()
			})
		})
	}
}
