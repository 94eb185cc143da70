package tracker_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tracker"
)

// How lost answers of a call are handled.
const (
	repeats = "it is repeated in TestAnswerThatIsLostChangesNothing"
	reads   = "it changes nothing"
)

// lostAnswers has an entry for every call of the services.
var lostAnswers = map[string]string{
	"JobService/SubmitJob":              repeats,
	"JobService/CancelJob":              repeats,
	"JobService/DeleteJob":              repeats,
	"JobService/PauseJob":               repeats,
	"JobService/ResumeJob":              repeats,
	"JobService/RetryDeadLetters":       repeats,
	"JobService/MakePackage":            `a second call returns the same job: TestPackageIsMadeOnce`,
	"JobService/GetJob":                 reads,
	"JobService/ListJobs":               reads,
	"JobService/ListOwners":             reads,
	"JobService/CheckFarm":              reads,
	"JobService/WatchJob":               reads,
	"AgentService/Join":                 repeats,
	"AgentService/Heartbeat":            repeats,
	"AgentService/ReturnLease":          repeats,
	"AgentService/Leave":                repeats,
	"AgentService/LeaseWork":            `a lease that nobody heard of is granted anew: TestExpiredLeasesAreReassigned`,
	"AgentService/EndWait":              `a wait that has ended is not ended again: TestEndWaitEndsTheNamedWait`,
	"AgentService/ListAgents":           reads,
	"AgentService/GetAgent":             reads,
	"SearchService/ProposeBatch":        repeats,
	"SearchService/FinishJob":           repeats,
	"SearchService/ReportModel":         repeats,
	"BuildService/ReportBuild":          repeats,
	"MeasureService/ReportMeasurements": repeats,
	"RunService/ReportRun":              repeats,
	"DeviceService/ListDevices":         reads,
	"DeviceService/GetDevice":           reads,
	"DeviceService/CordonDevice":        repeats,
	"DeviceService/UncordonDevice":      repeats,
	"DeviceService/DrainDevice":         repeats,
	"DeviceService/RecalibrateDevice":   repeats,
	"DeviceService/ReportCalibration":   repeats,
	"RecordService/BestRecords":         reads,
	"RecordService/ListRecords":         reads,
	"RecordService/ListRecordGroups":    reads,
	"RecordService/ListRecordKeys":      reads,
	"RecordService/FindLackingRecords":  reads,
	"RecordService/GetRecords":          reads,
	"RecordService/ImportRecords":       `what is there already is skipped: TestExportAndImport of package records`,
	"AdminService/BackupStore":          reads,
	"AdminService/PruneRecords":         `what is removed is not removed again: TestPruningKeepsWhatItSays of package records`,
	"ArtifactService/StatArtifact":      reads,
	"ArtifactService/DownloadArtifact":  reads,
	"ReleaseService/GetRelease":         reads,
	"ReleaseService/DownloadRelease":    reads,
	"ArtifactService/UploadArtifact":    `what was received is not sent again: TestFileTravelsThroughBrokenLines of package artifact`,
}

// lossy drops the first answer of every call that changes something. The call takes effect and is repeated.
type lossy struct {
	*trackerFarm
	restarts bool // the tracker restarts before the second attempt
	off      bool
	lost     map[string]int
}

func newLossy(t *testing.T, restarts bool, cfg tracker.Config) *lossy {
	l := &lossy{trackerFarm: newFarm(t, cfg), restarts: restarts, lost: map[string]int{}}
	l.intercept = l.lose
	l.restart()
	return l
}

func (l *lossy) lose(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := strings.TrimPrefix(method, "/tilth.v1.")
	err := call(ctx, method, req, reply, cc, opts...)
	if err != nil || l.off || lostAnswers[name] != repeats {
		return err
	}
	l.lost[name]++
	proto.Reset(reply.(proto.Message))
	if !l.restarts {
		return call(ctx, method, req, reply, cc, opts...)
	}
	l.restart()
	l.off = true
	defer func() { l.off = false }()
	return l.conn.Invoke(ctx, method, req, reply, opts...)
}

func TestAnswerThatIsLostChangesNothing(t *testing.T) {
	for name, restarts := range map[string]bool{"the call is repeated at once": false, "the tracker restarts in between": true} {
		t.Run(name, func(t *testing.T) {
			l := newLossy(t, restarts, tracker.Config{MaxAttempts: 1, Registerer: nil})
			job := l.submit("first", spec("conv"))
			if !strings.HasPrefix(job.GetId(), "job-00000001-") {
				t.Errorf("the job is %s", job.GetId())
			}
			tuner := l.tuner()
			lease := l.mustLease(tuner).GetLease()
			must[*tilthv1.HeartbeatResponse](t)(l.agents.Heartbeat(t.Context(), &tilthv1.HeartbeatRequest{
				Session: tuner, Leases: []*tilthv1.LeaseToken{lease},
			}))
			l.propose(lease, 0, 0, "a", "b", "c")
			builder, runner := l.builder(), l.runner()
			must[*tilthv1.ReturnLeaseResponse](t)(l.agents.ReturnLease(t.Context(), &tilthv1.ReturnLeaseRequest{Lease: l.mustLease(builder).GetLease()}))
			l.reportBuild(l.buildReport(l.mustLease(builder), "a"))
			work := l.mustLease(runner)
			l.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 1))
			must[*tilthv1.ReportMeasurementsResponse](t)(l.measure.ReportMeasurements(t.Context(), &tilthv1.ReportMeasurementsRequest{
				Lease: work.GetLease(), InfraError: tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, InfraMessage: "the board is off",
			}))
			if letters := l.job(job.GetId()).GetDeadLetters(); len(letters) != 1 || letters[0].GetAttempts() != 1 {
				t.Errorf("dead letters are %v", letters)
			}
			must[*tilthv1.RetryDeadLettersResponse](t)(l.jobs.RetryDeadLetters(t.Context(), &tilthv1.RetryDeadLettersRequest{JobId: job.GetId()}))
			l.reportBuild(l.buildReport(l.mustLease(builder)))
			work = l.mustLease(runner)
			l.report(work.GetLease(), ok(work.GetMeasure().GetCandidates()[0], 2))
			must[*tilthv1.PauseJobResponse](t)(l.jobs.PauseJob(t.Context(), &tilthv1.PauseJobRequest{JobId: job.GetId()}))
			must[*tilthv1.ResumeJobResponse](t)(l.jobs.ResumeJob(t.Context(), &tilthv1.ResumeJobRequest{JobId: job.GetId()}))
			must[*tilthv1.FinishJobResponse](t)(l.search.FinishJob(t.Context(), &tilthv1.FinishJobRequest{
				Lease: l.mustLease(tuner).GetLease(), State: tilthv1.JobState_JOB_STATE_DONE,
			}))
			must[*tilthv1.LeaveResponse](t)(l.agents.Leave(t.Context(), &tilthv1.LeaveRequest{Session: tuner}))
			other := l.submit("second", spec("conv"))
			must[*tilthv1.CancelJobResponse](t)(l.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: other.GetId()}))

			must[*tilthv1.DeleteJobResponse](t)(l.jobs.DeleteJob(t.Context(), &tilthv1.DeleteJobRequest{JobId: l.passing("third", spec("conv"))}))

			l.deviceCalls()
			l.modelCall()

			want := "queued, running, proposed 0×3, trial 0.0 a 0, trial 0.1 b 1, dead ERROR_CLASS_DEVICE_INFRA, retried 1, trial 0.2 c 2, " +
				"paused, queued, running, done"
			if got := describe(l.events(job.GetId(), 0, 12)); got != want {
				t.Errorf("events\n%s, want\n%s", got, want)
			}
			if got := describe(l.events(other.GetId(), 0, 2)); got != "queued, cancelled" {
				t.Errorf("events of the second job: %s", got)
			}
			if jobs := must[*tilthv1.ListJobsResponse](t)(l.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{})).GetJobs(); len(jobs) != 4 {
				t.Errorf("there are %d jobs", len(jobs))
			}
			for call, how := range lostAnswers {
				if how == repeats && l.lost[call] == 0 {
					t.Errorf("no answer of %s was lost", call)
				}
			}
		})
	}
}

func TestEveryCallIsSafeWhenItsAnswerIsLost(t *testing.T) {
	var calls []string
	protoregistry.GlobalFiles.RangeFilesByPackage("tilth.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for k := range s.Methods().Len() {
				calls = append(calls, string(s.Name())+"/"+string(s.Methods().Get(k).Name()))
			}
		}
		return true
	})
	slices.Sort(calls)
	for _, call := range calls {
		if lostAnswers[call] == "" {
			t.Errorf("nothing is said of %s", call)
		}
	}
	if len(calls) != len(lostAnswers) {
		t.Errorf("there are %d calls, and %d lines", len(calls), len(lostAnswers))
	}
}

func TestRepeatedAndStaleCallsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFarm(t, tracker.Config{Registerer: registry})
	f.submit("r", spec("conv"))
	f.submit("r", spec("conv"))
	lease := f.mustLease(f.tuner()).GetLease()
	f.propose(lease, 0, 0, "a", "b")
	f.propose(lease, 0, 0, "a", "b")
	builder := f.builder()
	lost := f.mustLease(builder)
	builder = f.builder() // invalidates the first session
	report := f.buildReport(f.mustLease(builder))
	f.reportBuild(report)
	f.reportBuild(report)
	run := f.mustLease(f.runner())
	for range 2 {
		f.report(run.GetLease(), ok(run.GetMeasure().GetCandidates()[0], 1))
	}
	for range 2 {
		f.report(run.GetLease(), ok(run.GetMeasure().GetCandidates()[1], 1))
	}
	_, err := f.build.ReportBuild(t.Context(), f.buildReport(lost))
	wantStale(t, err)
	finish := &tilthv1.FinishJobRequest{Lease: lease, State: tilthv1.JobState_JOB_STATE_DONE}
	for range 2 {
		must[*tilthv1.FinishJobResponse](t)(f.search.FinishJob(t.Context(), finish))
	}
	if n := gauge(t, registry, "repeated_calls_total"); n != 6 {
		t.Errorf("%v repeated calls are counted, want 6", n)
	}
	if n := gauge(t, registry, "stale_reports_total"); n != 1 {
		t.Errorf("%v stale calls are counted, want 1", n)
	}
}
