package tracker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/testkit/pgserver"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/postgres"
	"github.com/tilth-dev/tilth/tracker"
)

// newFarmOn returns a farm on a database.
func newFarmOn(t testing.TB, address string, metrics prometheus.Registerer) *trackerFarm {
	t.Helper()
	f := &trackerFarm{TB: t, dir: t.TempDir(), cfg: tracker.Config{FirstRetry: -1, Registerer: metrics}}
	f.open = func(string) (records.Store, error) { return postgres.Open(address, postgres.Options{}) }
	f.start()
	t.Cleanup(func() { f.stop() })
	return f
}

// TestFarmTunesOnADatabaseThatCrashes checks that a farm on a database tunes normally, also while the database
// crashes.
func TestFarmTunesOnADatabaseThatCrashes(t *testing.T) {
	server, address := pgserver.ForTest(t)
	registry := prometheus.NewRegistry()
	f := newFarmOn(t, address, registry)
	expect := func(line string) {
		t.Helper()
		if text := scrape(registry); !strings.Contains(text, line) {
			t.Errorf("metrics lack %q", line)
		}
	}
	job := f.submit("r", spec("conv"))
	tuner, builder, runner := f.tuner(), f.builder(), f.runner()
	search := f.mustLease(tuner).GetLease()
	f.propose(search, 0, 0, "slow", "fast")
	server.Kill()
	f.refusedWhileAway()
	expect("tilth_tracker_store_away 1\n")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	f.untilBack()
	expect("tilth_tracker_store_away 0\n")
	build := f.mustLease(builder)
	f.reportBuild(f.buildReport(build))
	f.cfg.Registerer = prometheus.NewRegistry()
	f.restart()
	work := f.mustLease(runner)
	var measured []*tilthv1.Measurement
	for i, c := range work.GetMeasure().GetCandidates() {
		measured = append(measured, ok(c, 1/float64(i+1)))
	}
	f.report(work.GetLease(), measured...)
	must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{
		Lease: search, State: tilthv1.JobState_JOB_STATE_DONE, Reason: "budget spent",
	}))
	if j := f.job(job.GetId()); j.GetState() != tilthv1.JobState_JOB_STATE_DONE || j.GetProgress()[0].GetTrials() != 2 || j.GetProgress()[0].GetBestSeconds() != 0.5 {
		t.Errorf("the job is %v", j)
	}
	_, err := must[tilthv1.AdminService_BackupStoreClient](t)(tilthv1.NewAdminServiceClient(f.conn).BackupStore(t.Context(), &tilthv1.BackupStoreRequest{})).Recv()
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("a backup is refused with %v", err)
	}
}

// refusedWhileAway waits until calls are refused, except those that change nothing in memory.
func (f *trackerFarm) refusedWhileAway() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute)
	defer cancel()
	for {
		// The first call may block, because the outage is not detected yet. Its change is stored once the database
		// returns.
		within, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		_, err := f.jobs.SubmitJob(within, &tilthv1.SubmitJobRequest{RequestId: "while away", Spec: spec("conv")})
		cancel()
		if wire.Reason(err) == wire.ReasonStoreAway && strings.Contains(err.Error(), "the database server is unavailable: try again later") {
			break
		}
		if err == nil || ctx.Err() != nil {
			f.Fatalf("a job was submitted while the database is away: %v", err)
		}
	}
	for said := ""; !strings.Contains(said, "the database server is unavailable"); {
		w := httptest.NewRecorder()
		f.tracker.HTTPHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if said = w.Body.String(); ctx.Err() != nil {
			f.Fatalf("the tracker says that it is ready: %s", said)
		}
	}
}

// untilBack waits until calls are accepted again.
func (f *trackerFarm) untilBack() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute)
	defer cancel()
	for {
		_, err := f.jobs.SubmitJob(ctx, &tilthv1.SubmitJobRequest{RequestId: "while away", Spec: spec("conv")})
		switch {
		case err == nil:
			return
		case status.Code(err) != codes.Unavailable:
			f.Fatal(err)
		}
	}
}

// TestTrackerThatLostItsDatabaseConfirmsNothing is a regression test: a tracker that had lost its database without
// knowing acknowledged changes without effect, such as a pause, although another tracker may have resumed the job.
func TestTrackerThatLostItsDatabaseConfirmsNothing(t *testing.T) {
	address := pgserver.DatabaseForTest(t)
	store := must[*postgres.DB](t)(postgres.Open(address, postgres.Options{}))
	defer store.Close()
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: store, ArtifactsDir: t.TempDir()}))
	job := must[*tilthv1.SubmitJobResponse](t)(tr.SubmitJob(t.Context(), &tilthv1.SubmitJobRequest{RequestId: "r", Spec: spec("conv")})).GetJob()
	pause := &tilthv1.PauseJobRequest{JobId: job.GetId()}
	for range 2 {
		must[*tilthv1.PauseJobResponse](t)(tr.PauseJob(t.Context(), pause))
	}
	other := must[*pgx.Conn](t)(pgx.Connect(t.Context(), address))
	defer other.Close(context.Background())
	must[pgconn.CommandTag](t)(other.Exec(t.Context(), "UPDATE tilth.tracker SET epoch = epoch + 1"))
	if _, err := tr.PauseJob(t.Context(), pause); status.Code(err) != codes.Unavailable {
		t.Errorf("it acknowledges that the job is paused: %v", err)
	}
}

// TestTrackerThatLostItsDatabaseStops checks that a tracker whose database was taken over stops answering.
func TestTrackerThatLostItsDatabaseStops(t *testing.T) {
	server, address := pgserver.ForTest(t)
	first := must[*postgres.DB](t)(postgres.Open(address, postgres.Options{}))
	tr := must[*tracker.Tracker](t)(tracker.New(tracker.Config{Store: first, ArtifactsDir: t.TempDir()}))
	ran := make(chan error, 1)
	go func() { ran <- tr.Run(context.Background()) }()
	server.Kill() // releases the first tracker's lock
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	second, err := postgres.Open(address, postgres.Options{LockTimeout: time.Millisecond})
	for errors.Is(err, records.ErrLocked) { // the first one was faster
		if err := server.Do(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"); err != nil {
			t.Fatal(err)
		}
		second, err = postgres.Open(address, postgres.Options{LockTimeout: time.Millisecond})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := <-ran; !errors.Is(err, records.ErrTakenOver) {
		t.Errorf("the tracker ended with %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

// TestFarmGoesOnWhenItsDatabaseFailsOver checks that a failover to the standby loses nothing.
func TestFarmGoesOnWhenItsDatabaseFailsOver(t *testing.T) {
	primary, address := pgserver.ForTest(t)
	standby := must[*pgserver.Server](t)(pgserver.Standby(primary.Folder()))
	t.Cleanup(func() {
		if err := standby.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := primary.WaitForStandby(t.Context()); err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(address, primary.Folder(), primary.Folder()+","+standby.Folder(), 1) + "&target_session_attrs=read-write"
	f := newFarmOn(t, both, nil)
	job := f.submit("r", spec("conv"))
	tuner, builder, runner := f.tuner(), f.builder(), f.runner()
	search := f.mustLease(tuner).GetLease()
	f.propose(search, 0, 0, "slow", "fast")
	build := f.mustLease(builder)
	primary.Kill()
	f.refusedWhileAway()
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.untilBack()
	if err := primary.Start(); err != nil { // not demoted: it accepts writes
		t.Fatal(err)
	}
	f.reportBuild(f.buildReport(build))
	f.restart()
	work := f.mustLease(runner)
	var measured []*tilthv1.Measurement
	for i, c := range work.GetMeasure().GetCandidates() {
		measured = append(measured, ok(c, 1/float64(i+1)))
	}
	f.report(work.GetLease(), measured...)
	if j := f.job(job.GetId()); j.GetProgress()[0].GetTrials() != 2 || j.GetProgress()[0].GetBestSeconds() != 0.5 {
		t.Errorf("the job is %v", j)
	}
}
