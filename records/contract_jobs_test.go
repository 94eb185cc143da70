package records_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

const (
	running = tilthv1.JobState_JOB_STATE_RUNNING
	done    = tilthv1.JobState_JOB_STATE_DONE
)

func aJobIsWhatWasStoredOfItLast(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	_, err := s.Job("job-1")
	missing(t, "a job that nobody made", err)
	w := &records.Write{}
	storetest.PutNew(w, "job-1", "ana", "r")
	storetest.PutNew(w, "job-2", "ana", "s")
	w.PutProgress("job-1", 1, &tilthv1.TaskProgress{Trials: 8})
	w.PutJob(storetest.JobRow("job-2", done, records.RequestKey("ana", "s")))
	w.EndJob("job-2", &storev1.EndedRow{Owner: "ana", StoredBytes: 7})
	commit(t, s, w)
	for range 2 {
		job, err := s.Job("job-1")
		if err != nil || job.GetState() != running || len(job.GetSpec().GetTasks()) != 2 || job.GetProgress()[1].GetTrials() != 8 {
			t.Errorf("the job is %v, %v", job, err)
		}
		if row, err := s.JobRow("job-2"); err != nil || row.GetJob().GetState() != done || row.GetProposals() != 3 {
			t.Errorf("the row is %v, %v", row, err)
		}
		open, err := s.OpenJobs()
		if err != nil || len(open) != 1 || open[0].ID != "job-1" || open[0].LastSequence != 1 || len(open[0].Progress) != 2 || open[0].Damage != nil {
			t.Errorf("open are %v, %v", open, err)
		}
		if last, err := s.LastJobID(); err != nil || last != "job-2" {
			t.Errorf("the last job is %q, %v", last, err)
		}
		var ended []string
		err = s.EndedJobs(func(id string, row *storev1.EndedRow) {
			ended = append(ended, fmt.Sprint(id, row.GetOwner(), row.GetStoredBytes()))
		})
		if err != nil || !slices.Equal(ended, []string{"job-2ana7"}) {
			t.Errorf("ended are %q, %v", ended, err)
		}
		s = k.reopened(t, s, folder)
	}
}

func jobsComeInPages(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	var all, open []string
	for i := range 30 {
		id := fmt.Sprintf("job-%08d", i)
		storetest.PutNew(w, id, "ana", id)
		all = append(all, id)
		if i%3 == 0 {
			open = append(open, id)
		} else {
			w.PutJob(storetest.JobRow(id, done, records.RequestKey("ana", id)))
		}
	}
	commit(t, s, w)
	slices.Reverse(all)
	slices.Reverse(open)
	ended := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(open, id) })
	for _, c := range []struct {
		states []tilthv1.JobState
		want   []string
	}{{nil, all}, {[]tilthv1.JobState{running}, open}, {[]tilthv1.JobState{done}, ended}} {
		for _, most := range []int{1, 7, 100} {
			var got []string
			q := records.JobQuery{States: c.states, Max: most, MaxBytes: 1 << 20}
			for first := true; first || q.Before != ""; first = false {
				jobs, next, err := s.Jobs(q)
				if err != nil || len(jobs) > most {
					t.Fatalf("a page of %d jobs, %v", len(jobs), err)
				}
				for _, j := range jobs {
					if len(j.GetSpec().GetTasks()) != 2 || j.GetSpec().GetTasks()[0].GetWorkload() != nil {
						t.Errorf("a job is listed as %v", j)
					}
					got = append(got, j.GetId())
				}
				q.Before = next
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, %d at a time: %v, want %v", c.states, most, got, c.want)
			}
		}
	}
	if jobs, next, err := s.Jobs(records.JobQuery{Max: 10, MaxBytes: 1}); err != nil || len(jobs) != 1 || next != all[0] {
		t.Errorf("a page of few bytes has %d jobs, %q, %v", len(jobs), next, err)
	}
}

func aDroppedJobLeavesItsRecords(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	w := &records.Write{}
	storetest.PutNew(w, "job-1", "ana", "r")
	storetest.PutNew(w, "job-2", "ana", "s")
	for _, id := range []string{"job-1", "job-2"} {
		w.AppendTrials(id, "cpu", &tilthv1.TaskSpec{WorkloadDigest: records.Digest([]byte("conv"))}, []*tilthv1.JobEvent{{Sequence: 2, Event: &tilthv1.JobEvent_Trial{
			Trial: &tilthv1.TrialRecorded{Measurement: storetest.Record("cpu", "conv", int64(len(id)), 1).GetMeasurement(), BatchId: id + ".0"},
		}}})
		w.PutBatch(id+".0", &storev1.BatchRow{JobId: id, EventSequence: 1})
		w.CloseBatch(id+".1", &storev1.BatchRow{JobId: id})
		w.PutJob(storetest.JobRow(id, done, records.RequestKey("ana", map[string]string{"job-1": "r", "job-2": "s"}[id])))
		w.EndJob(id, &storev1.EndedRow{Owner: "ana"})
	}
	commit(t, s, w)
	count := len(storetest.List(t, s, "", ""))
	w = &records.Write{}
	w.DropJob("job-2")
	commit(t, s, w)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := s.Job("job-2")
		missing(t, "the job", err)
		_, err = s.JobOwner("job-2")
		missing(t, "its owner", err)
		_, err = s.JobByRequest("ana", "s")
		missing(t, "its request", err)
		_, err = s.ClosedBatch("job-2.1")
		missing(t, "its batch", err)
		if events, err := s.Events("job-2", 0, 10); err != nil || len(events) != 0 {
			t.Errorf("its events are %v, %v", events, err)
		}
		if last, err := s.LastJobID(); err != nil || last != "job-2" {
			t.Errorf("the last job is %q, %v", last, err)
		}
		if n := len(storetest.List(t, s, "", "")); n != count {
			t.Errorf("%d records are left of %d", n, count)
		}
		if events, err := s.Events("job-1", 0, 10); err != nil || len(events) != 2 {
			t.Errorf("the other's events are %v, %v", events, err)
		}
		if batches, err := s.OpenBatches(); err != nil || len(batches) != 1 || batches[0].ID != "job-1.0" {
			t.Errorf("batches are %v, %v", batches, err)
		}
		s = k.reopened(t, s, folder)
	}
}

func aRequestIsItsOwners(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	storetest.PutNew(w, "job-1", "ana", "r")
	storetest.PutNew(w, "job-2", "ben", "r")
	commit(t, s, w)
	for owner, want := range map[string]string{"ana": "job-1", "ben": "job-2"} {
		if id, err := s.JobByRequest(owner, "r"); err != nil || id != want {
			t.Errorf("%s's request made %q, %v", owner, id, err)
		}
		if got, err := s.JobOwner(want); err != nil || got != (records.Owner{Name: owner}) {
			t.Errorf("%s is %+v's, %v", want, got, err)
		}
	}
	_, err := s.JobByRequest("carl", "r")
	missing(t, "another's request", err)
}

// whatIsReturnedBelongsToTheCaller modifies every returned message and reads it again.
func whatIsReturnedBelongsToTheCaller(t *testing.T, k storeKind) {
	s := fresh(t, k)
	w := &records.Write{}
	storetest.PutNew(w, "job", "ana", "r")
	agent := &tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: "board"}, Session: "s"}
	w.PutAgent(agent)
	agent.Session = "changed" // after it was added to the write
	w.AddRecord(storetest.Record("cpu", "conv", 1, 0.5))
	commit(t, s, w)
	for range 2 {
		job, err := s.Job("job")
		if err != nil || job.GetSpec().GetName() != "net" || string(job.GetSpec().GetTasks()[0].GetWorkload()) != "conv" {
			t.Fatalf("the job is %v, %v", job, err)
		}
		job.Spec.Name, job.Spec.Tasks[0].Workload[0] = "changed", 'x'
		best, err := s.BestAllowed("cpu", records.Digest([]byte("conv")), "")
		if err != nil || !proto.Equal(best, storetest.Record("cpu", "conv", 1, 0.5)) {
			t.Fatalf("the best is %v, %v", best, err)
		}
		best.Measurement.LatencySeconds, best.Workload[0] = 9, 'x'
		err = s.Agents(func(a *tilthv1.Agent) {
			if a.GetSession() != "s" {
				t.Errorf("the agent is %v", a)
			}
			a.Session = "changed"
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
