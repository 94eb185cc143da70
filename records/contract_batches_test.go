package records_test

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

func aBatchIsUnderWayClosedOrGone(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	w := &records.Write{}
	storetest.PutNew(w, "job-1", "ana", "r")
	storetest.PutNew(w, "job-2", "ana", "s")
	w.AppendEvent("job-1", &tilthv1.JobEvent{Sequence: 2, Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{
		Candidates: []*tilthv1.Candidate{{Digest: "a"}, {Digest: "b"}}, PredictedSeconds: []float32{0, 2},
	}}})
	row := &storev1.BatchRow{JobId: "job-1", EventSequence: 2}
	for _, id := range []string{"job-1.00", "job-1.01", "job-1.02", "job-1.03-life"} {
		w.PutBatch(id, row)
	}
	w.DropBatch("job-1.01")
	w.CloseBatch("job-1.02", &storev1.BatchRow{JobId: "job-1", EventSequence: 2, Stage: storev1.Stage_STAGE_DEAD})
	w.CloseBatch("job-1.03-life", row)
	w.CloseBatch("job-2.00", &storev1.BatchRow{JobId: "job-2"})
	commit(t, s, w)
	for range 2 {
		open, err := s.OpenBatches()
		if err != nil || len(open) != 1 || open[0].ID != "job-1.00" || len(open[0].Candidates) != 2 || !slices.Equal(open[0].PredictedSeconds, []float32{0, 2}) || open[0].Damage != nil {
			t.Errorf("under way are %v, %v", open, err)
		}
		_, err = s.ClosedBatch("job-1.00")
		missing(t, "one under way", err)
		if dead, err := s.DeadBatch("job-1.02"); err != nil || len(dead.Candidates) != 2 {
			t.Errorf("the dead one is %v, %v", dead, err)
		}
		_, err = s.DeadBatch("job-1.03-life")
		missing(t, "one that is not dead", err)
		if id, row, err := s.ClosedProposal("job-1.03"); err != nil || id != "job-1.03-life" || row.GetJobId() != "job-1" {
			t.Errorf("the proposal is %q, %v, %v", id, row, err)
		}
		_, _, err = s.ClosedProposal("job-1.0")
		missing(t, "a proposal whose number only begins like one", err)
		ids, proposals, err := s.ClosedJobs()
		if err != nil || !slices.Equal(ids, []string{"job-1", "job-2"}) || !slices.Equal(proposals, []uint64{3, 3}) {
			t.Errorf("closed are batches of %v, %v, %v", ids, proposals, err)
		}
		s = k.reopened(t, s, folder)
	}
	w = &records.Write{}
	w.ReopenBatch("job-1.02")
	w.PutBatch("job-1.02", row)
	w.DropClosed("job-1.03", "job-1.04")
	commit(t, s, w)
	if open, err := s.OpenBatches(); err != nil || len(open) != 2 || open[1].ID != "job-1.02" {
		t.Errorf("under way are %v, %v", open, err)
	}
	if ids, _, err := s.ClosedJobs(); err != nil || !slices.Equal(ids, []string{"job-2"}) {
		t.Errorf("closed are batches of %v, %v", ids, err)
	}
}

func agentsAndDevicesAreKeptByName(t *testing.T, k storeKind) {
	folder := k.folder(t)
	s := k.opened(t, folder)
	w := &records.Write{}
	for _, name := range []string{"b", "a", "c", "a"} {
		w.PutAgent(&tilthv1.Agent{Spec: &tilthv1.AgentSpec{Name: name}, Session: "of " + name})
		w.PutDevice(name, &storev1.DeviceRow{Cordon: &tilthv1.Cordon{By: name}})
	}
	w.DropAgent("b")
	w.DropDevice("c")
	w.DropDevice("nobody")
	commit(t, s, w)
	for range 2 {
		var agents, devices []string
		err := s.Agents(func(a *tilthv1.Agent) { agents = append(agents, a.GetSpec().GetName()+a.GetSession()) })
		if err != nil || !slices.Equal(agents, []string{"aof a", "cof c"}) {
			t.Errorf("agents %q, %v", agents, err)
		}
		err = s.Devices(func(name string, row *storev1.DeviceRow) { devices = append(devices, name+row.GetCordon().GetBy()) })
		if err != nil || !slices.Equal(devices, []string{"aa", "bb"}) {
			t.Errorf("devices %q, %v", devices, err)
		}
		s = k.reopened(t, s, folder)
	}
}
