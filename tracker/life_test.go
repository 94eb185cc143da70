package tracker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// file returns the path of the farm's records file.
func (f *trackerFarm) file() string { return filepath.Join(f.dir, "records.db") }

// copyFile copies a closed records file.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err := errors.Join(err, os.WriteFile(to, b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// proposeAndLease proposes a batch, builds it, and leases it to a runner.
func (f *trackerFarm) proposeAndLease(tuner *tilthv1.LeaseToken, builder, runner string, n uint64, task uint32) *tilthv1.LeaseWorkResponse {
	f.Helper()
	f.propose(tuner, n, task, "kernel")
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	return f.mustLease(runner)
}

// TestLeasesFromBeforeARestoreAreRejected restores an older file. Sessions, attempts and numbers restart from it, so a
// report of the lost generation used to be accepted for another workload.
func TestLeasesFromBeforeARestoreAreRejected(t *testing.T) {
	for name, marked := range map[string]bool{"put back by hand": false, "a backup": true} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t, tracker.Config{})
			job := f.submit("r1", spec("conv", "pool"))
			builder, runner := f.builder(), f.runner()
			search := f.mustLease(f.tuner()).GetLease()
			kept := f.proposeAndLease(search, builder, runner, 0, 0)
			f.stop()
			saved := filepath.Join(t.TempDir(), "saved.db")
			copyFile(t, f.file(), saved)
			if marked {
				if err := bolt.MarkCopy(saved, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			f.start()
			lost := f.proposeAndLease(search, builder, runner, 1, 0)
			lostJob := f.submit("r2", spec("conv"))
			f.stop()
			copyFile(t, saved, f.file())
			f.start()

			if marked {
				_, err := f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: runner})
				wantStatus(t, err, codes.NotFound, wire.ReasonVoidSession, "join again")
				builder, runner = f.builder(), f.runner()
				search = f.mustLease(f.tuner()).GetLease()
				kept = f.again(builder, runner)
			}
			other := f.submit("r3", spec("other"))
			if other.GetId() == lostJob.GetId() {
				t.Errorf("%s is the name of a job that is lost", other.GetId())
			}
			now := f.proposeAndLease(search, builder, runner, 1, 1)
			if now.GetMeasure().GetBatchId() == lost.GetMeasure().GetBatchId() {
				t.Errorf("%s is the name of a batch that is lost", now.GetMeasure().GetBatchId())
			}
			_, err := f.measure.ReportMeasurements(t.Context(), &tilthv1.ReportMeasurementsRequest{
				Lease: lost.GetLease(), Measurements: []*tilthv1.Measurement{ok(lost.GetMeasure().GetCandidates()[0], 1e-9)},
			})
			wantStatus(t, err, codes.FailedPrecondition, wire.ReasonStaleLease, "no longer held")
			forged := proto.CloneOf(now.GetLease())
			forged.Life = lost.GetLease().GetLife()
			_, err = f.measure.ReportMeasurements(t.Context(), &tilthv1.ReportMeasurementsRequest{
				Lease: forged, Measurements: []*tilthv1.Measurement{ok(now.GetMeasure().GetCandidates()[0], 1e-9)},
			})
			wantStatus(t, err, codes.FailedPrecondition, wire.ReasonStaleLease, "no longer held")
			f.report(kept.GetLease(), ok(kept.GetMeasure().GetCandidates()[0], 0.25))
			f.report(now.GetLease(), ok(now.GetMeasure().GetCandidates()[0], 0.5))
			p := f.job(job.GetId()).GetProgress()
			if p[0].GetBestSeconds() != 0.25 || p[1].GetBestSeconds() != 0.5 {
				t.Errorf("the job came to %v", p)
			}
		})
	}
}

// again leases the batch in progress at the time of the copy to agents with new sessions. Its object may have to be
// rebuilt.
func (f *trackerFarm) again(builder, runner string) *tilthv1.LeaseWorkResponse {
	f.Helper()
	if w := f.lease(runner); w.GetLease() != nil {
		return w
	}
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	return f.mustLease(runner)
}

// TestRepeatedProposalIsKnownInAnotherLife checks that batch names contain the generation of their proposal.
func TestRepeatedProposalIsKnownInAnotherLife(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	builder, runner := f.builder(), f.runner()
	search := f.mustLease(f.tuner()).GetLease()
	names := make([]string, 3)
	for n := range uint64(3) {
		w := f.proposeAndLease(search, builder, runner, n, 0)
		names[n] = w.GetMeasure().GetBatchId()
		if n != 1 {
			f.report(w.GetLease(), ok(w.GetMeasure().GetCandidates()[0], 0.25))
		}
		f.restart()
	}
	for n, name := range names {
		if got := f.propose(search, uint64(n), 0, "kernel"); got.GetBatchId() != name || got.GetFirstTrial() != uint32(n) {
			t.Errorf("proposal %d is %v, was batch %s", n, got, name)
		}
	}
}

// TestTwoMeasurementsOfOneInstantAreTwoRecords is a regression test: the second measurement replaced the first if the
// clock did not advance.
func TestTwoMeasurementsOfOneInstantAreTwoRecords(t *testing.T) {
	instant := time.Unix(1700000000, 0)
	f := newFarm(t, tracker.Config{Now: func() time.Time { return instant }})
	job := f.submit("r1", spec("conv"))
	builder, runner := f.builder(), f.runner()
	search := f.mustLease(f.tuner()).GetLease()
	for n, latency := range []float64{0.25, 0.5, 0.125} {
		w := f.proposeAndLease(search, builder, runner, uint64(n), 0)
		m := ok(w.GetMeasure().GetCandidates()[0], latency)
		m.At = timestamppb.New(instant)
		f.report(w.GetLease(), m)
	}
	if all := f.allRecords(); len(all) != 3 {
		t.Errorf("%d records of three measurements: %v", len(all), all)
	}
	want := "queued, running, proposed 0×1, trial 0.0 kernel 0.25, proposed 1×1, trial 0.1 kernel 0.5, proposed 2×1, trial 0.2 kernel 0.125"
	if got := describe(f.events(job.GetId(), 1, 8)); got != want {
		t.Errorf("the events are %s, want %s", got, want)
	}
}
