package tracker_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// TestFarmTunesOnAStoreInMemory checks that such a farm tunes normally, and refuses operations on files.
func TestFarmTunesOnAStoreInMemory(t *testing.T) {
	f := &trackerFarm{TB: t, dir: t.TempDir(), cfg: tracker.Config{FirstRetry: -1}}
	f.open = func(string) (records.Store, error) { return bolt.OpenMemory(bolt.Options{}) }
	f.start()
	t.Cleanup(func() { f.stop() })
	job := f.submit("r", spec("conv"))
	tuner, builder, runner := f.tuner(), f.builder(), f.runner()
	search := f.mustLease(tuner).GetLease()
	f.propose(search, 0, 0, "slow", "fast")
	build := f.mustLease(builder)
	f.reportBuild(f.buildReport(build))
	work := f.mustLease(runner)
	var measured []*tilthv1.Measurement
	for i, c := range work.GetMeasure().GetCandidates() {
		measured = append(measured, ok(c, 1/float64(i+1)))
	}
	f.report(work.GetLease(), measured...)
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{
		Lease: search, State: tilthv1.JobState_JOB_STATE_DONE, Reason: "budget spent",
	}))
	if j := f.job(job.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_DONE || j.GetProgress()[0].GetTrials() != 2 {
		t.Errorf("the job is %v", j)
	}
	best := must[*tilthv1.BestRecordsResponse](t)(f.records.BestRecords(t.Context(), &tilthv1.BestRecordsRequest{}))
	if len(best.GetRecords()) != 1 || best.GetRecords()[0].GetMeasurement().GetLatencySeconds() != 0.5 {
		t.Errorf("the best are %v", best)
	}
	stream, err := tilthv1.NewAdminServiceClient(f.conn).BackupStore(t.Context(), &tilthv1.BackupStoreRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	wantStatus(t, err, codes.FailedPrecondition, "", "there is no file to back up")
	store := must[records.Store](t)(bolt.OpenMemory(bolt.Options{}))
	defer store.Close()
	if _, err := tracker.New(tracker.Config{Store: store, Backups: tracker.Backups{Dir: t.TempDir()}}); err == nil {
		t.Error("a store in memory is to be backed up")
	}
}
