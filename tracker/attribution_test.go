package tracker_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// allRecords returns the records of a workload.
func (f *trackerFarm) allRecords() (all []*tilthv1.Record) {
	f.Helper()
	stream := must[grpc.ServerStreamingClient[tilthv1.ListRecordsResponse]](f)(f.records.ListRecords(f.Context(), &tilthv1.ListRecordsRequest{}))
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		all = append(all, must[*tilthv1.ListRecordsResponse](f)(r, err).GetRecord())
	}
}

// TestRunnerSpeaksForItsDeviceOnly is a regression test: a runner that reported another device and time overwrote
// that device's measurement.
func TestRunnerSpeaksForItsDeviceOnly(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	job := f.submit("r1", spec("conv"))
	tuner := f.mustLease(f.tuner())
	builder := f.builder()

	f.propose(tuner.GetLease(), 0, 0, "good")
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	honest := f.mustLease(f.runner())
	f.report(honest.GetLease(), ok(honest.GetMeasure().GetCandidates()[0], 0.5))
	acknowledged := f.allRecords()[0].GetMeasurement()

	f.propose(tuner.GetLease(), 1, 0, "good")
	f.reportBuild(f.buildReport(f.mustLease(builder)))
	liar := f.mustLease(f.join("liar", tilthv1.AgentKind_AGENT_KIND_RUNNER))
	lie := ok(liar.GetMeasure().GetCandidates()[0], 0.1)
	lie.Device, lie.At = acknowledged.GetDevice(), acknowledged.GetAt()
	lie.BuildSeconds, lie.Suspected = 1e6, "the other device changed"
	f.report(liar.GetLease(), lie)

	all := f.allRecords()
	if len(all) != 2 {
		t.Fatalf("%d records of two measurements: %v", len(all), all)
	}
	byDevice := map[string]*tilthv1.Measurement{}
	for _, r := range all {
		byDevice[r.GetMeasurement().GetDevice()] = r.GetMeasurement()
	}
	if got := byDevice["runner"]; got.GetLatencySeconds() != 0.5 || !got.GetAt().AsTime().Equal(acknowledged.GetAt().AsTime()) {
		t.Errorf("the acknowledged record became %v", got)
	}
	got := byDevice["liar"]
	if got.GetBuildSeconds() != 0.25 || got.GetSuspected() != "" || !got.GetAt().AsTime().After(acknowledged.GetAt().AsTime()) {
		t.Errorf("the runner's word counts beyond its device: %v", got)
	}
	if events := f.events(job.GetId(), 1, 6); describe(events[5:]) != "trial 0.1 good 0.1" {
		t.Errorf("got %s", describe(events))
	}
}

// TestMeasurementIsDatedByTheTracker regardless of the device's clock.
func TestMeasurementIsDatedByTheTracker(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := newFarm(t, tracker.Config{Now: func() time.Time { return now }})
	f.submit("r1", spec("conv"))
	tuner := f.mustLease(f.tuner())
	f.propose(tuner.GetLease(), 0, 0, "good")
	f.reportBuild(f.buildReport(f.mustLease(f.builder())))
	work := f.mustLease(f.runner())
	m := ok(work.GetMeasure().GetCandidates()[0], 0.5)
	m.At, m.PreferredSeconds = timestamppb.New(now.AddDate(10, 0, 0)), 0.3
	f.report(work.GetLease(), m)
	stored := f.allRecords()[0].GetMeasurement()
	if at := stored.GetAt().AsTime(); !at.Equal(now) {
		t.Errorf("measured at %v, reported at %v", at, now)
	}
	if seconds := stored.GetPreferredSeconds(); seconds != 0 {
		t.Errorf("a runner prefers its candidate by %v s", seconds)
	}
}

// TestOnlyTheHolderRenewsALease checks that an agent that lists another agent's lease must drop it.
func TestOnlyTheHolderRenewsALease(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	held := f.mustLease(f.tuner()).GetLease()
	other := f.join("other", tilthv1.AgentKind_AGENT_KIND_TUNER)
	beat := func(session string) int {
		r := must[*tilthv1.HeartbeatResponse](t)(f.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{Session: session, Leases: []*tilthv1.LeaseToken{held}}))
		return len(r.GetDropped())
	}
	if beat(other) != 1 || beat(held.GetSession()) != 0 {
		t.Error("a lease is kept alive by who does not hold it, or dropped by who does")
	}
}

// TestArtifactsSizeIsWhatTheTrackerHas checks that the builder's size is ignored.
func TestArtifactsSizeIsWhatTheTrackerHas(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	f.submit("r1", spec("conv"))
	tuner := f.mustLease(f.tuner())
	f.propose(tuner.GetLease(), 0, 0, "good")
	report := f.buildReport(f.mustLease(f.builder()))
	want := report.GetArtifacts()[0].GetSizeBytes()
	report.Artifacts[0].SizeBytes = 1 << 60
	f.reportBuild(report)
	if got := f.mustLease(f.runner()).GetMeasure().GetArtifacts()[0].GetSizeBytes(); got != want {
		t.Errorf("a runner is told of %d bytes, there are %d", got, want)
	}
}
