package tracker_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/tilth-dev/tilth/proto/tilth/store/v1"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/tracker"
)

// huge exceeds the default message size of a connection.
var huge = strings.Repeat("x", 5<<20)

// hostileJob stores an ended job that could be created before sizes were bounded.
func hostileJob(w *records.Write, id string, tasks int) {
	s := spec("conv")
	s.Tasks[0].Name = huge
	for n := range tasks {
		s.Tasks = append(s.Tasks, &tilthv1.TaskSpec{Name: fmt.Sprint("task ", n), WorkloadDigest: records.Digest([]byte(id))})
	}
	progress := make([]*tilthv1.TaskProgress, len(s.GetTasks()))
	for i := range progress {
		progress[i] = &tilthv1.TaskProgress{}
	}
	now := timestamppb.Now()
	w.PutNew(id, records.RequestKey("", id), records.EncodeJob(s, progress))
	w.PutJob(&storev1.JobRow{Job: &tilthv1.Job{
		Id: id, State: tilthv1.JobState_JOB_STATE_CANCELLED, Reason: huge, CreatedAt: now, EndedAt: now,
	}})
	failed := ok(candidates("a")[0], 0)
	failed.Candidate, failed.At, failed.Message = candidates("a")[0], now, huge
	failed.Error, failed.SamplesSeconds, failed.LatencySeconds = tilthv1.ErrorClass_ERROR_CLASS_COMPILE_ERROR, nil, 0
	w.AppendEvent(id, &tilthv1.JobEvent{Sequence: 1, At: now, Event: &tilthv1.JobEvent_Proposed{Proposed: &tilthv1.BatchProposed{Candidates: candidates("a")}}})
	w.AppendTrials(id, "cpu-1", s.GetTasks()[0], []*tilthv1.JobEvent{{Sequence: 2, At: now, Event: &tilthv1.JobEvent_Trial{
		Trial: &tilthv1.TrialRecorded{Measurement: failed},
	}}})
	w.AppendEvent(id, &tilthv1.JobEvent{Sequence: 3, At: now, Event: &tilthv1.JobEvent_State{
		State: &tilthv1.JobStateChanged{State: tilthv1.JobState_JOB_STATE_CANCELLED, Reason: huge},
	}})
}

// TestOversizeRowsOfOldFilesAreReadable is a regression test: a name or reason of 40 MiB broke all listings, and a
// builder's message of 64 MiB broke watching its job and all exports.
func TestOversizeRowsOfOldFilesAreReadable(t *testing.T) {
	var log bytes.Buffer
	f := newFarm(t, tracker.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	f.store(func(w *records.Write) {
		for n := range 4 {
			hostileJob(w, fmt.Sprintf("job-%08d", n+1), 1000*n)
		}
		r := record("b", 2)
		r.Measurement.Candidate = big("big", records.MaxRecordBytes)
		w.AddRecord(r)
		w.AddRecord(record("c", 3))
	})
	if got := f.jobPages(100); len(got) != 4 {
		t.Errorf("%v are listed, want four jobs", got)
	}
	old := must[*tilthv1.ListJobsResponse](t)(f.jobs.ListJobs(t.Context(), &tilthv1.ListJobsRequest{}))
	if len(old.GetJobs()) != 4 || proto.Size(old) > 4<<20 {
		t.Errorf("an old client is told of %d jobs in %d bytes", len(old.GetJobs()), proto.Size(old))
	}
	j := f.job("job-00000001")
	for what, text := range map[string]string{"reason": j.GetReason(), "name of a task": j.GetSpec().GetTasks()[0].GetName()} {
		if !strings.HasSuffix(text, "(cut, it had 5242880 bytes)") || len(text) > records.MaxNameBytes {
			t.Errorf("the %s has %d bytes and does not say that it was cut", what, len(text))
		}
	}
	if got := describe(f.events("job-00000001", 1, 3)); !strings.HasPrefix(got, "proposed 0×1, trial") || !strings.HasSuffix(got, "cancelled") {
		t.Errorf("its watchers are told %s", got)
	}
	listed := 0
	stream := must[grpc.ServerStreamingClient[tilthv1.ListRecordsResponse]](t)(f.records.ListRecords(t.Context(), &tilthv1.ListRecordsRequest{}))
	for ; ; listed++ {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if listed != 5 {
		t.Errorf("%d records are listed, want a of each job, and c", listed)
	}
	if text := log.String(); !strings.Contains(text, "record left out of a listing") || !strings.Contains(text, big("big", records.MaxRecordBytes).GetDigest()) {
		t.Error("the log does not name the record that was left out")
	}
	f.submit("r", spec("conv"))
	f.restart()
	if got := f.jobPages(100); len(got) != 5 {
		t.Errorf("%v are listed after a restart", got)
	}
}

func TestLongMessageOfABuilderIsRefused(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.submit("r", spec("conv")).GetId()
	f.propose(f.mustLease(f.tuner()).GetLease(), 0, 0, "a", "b")
	report := f.buildReport(f.mustLease(f.builder()), "a")
	for _, o := range report.GetOutcomes() {
		if o.GetError() != none {
			o.Message = strings.Repeat("é", 1<<20)
			_, err := tilthv1.NewBuildServiceClient(f.conn).ReportBuild(t.Context(), report)
			wantStatus(t, err, codes.InvalidArgument, "", "message: has 2097152 bytes, more than the limit of 16384")
			o.Message = strings.Repeat("é", records.MaxMessageBytes/2)
		}
	}
	f.reportBuild(report)
	events := f.events(id, 4, 1)
	if got := events[0].GetTrial().GetMeasurement().GetMessage(); len(got) != records.MaxMessageBytes {
		t.Errorf("the message has %d bytes: %.100s", len(got), got)
	}
}

func TestLongReasonIsCutBeforeItIsStored(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	id := f.submit("r", spec("conv")).GetId()
	must[*tilthv1.CancelJobResponse](t)(f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: id, Reason: strings.Repeat("x", 4096)}))
	if got := f.job(id).GetReason(); len(got) > records.MaxReasonBytes || !strings.HasSuffix(got, "(cut, it had 4096 bytes)") {
		t.Errorf("the reason has %d bytes", len(got))
	}
}

// TestMessageBeyondItsMethodsBoundIsRefusedByATracker uses bounds of methods far below the maximum message size.
func TestMessageBeyondItsMethodsBoundIsRefusedByATracker(t *testing.T) {
	f := newFarm(t, tracker.Config{})
	_, err := f.jobs.CancelJob(t.Context(), &tilthv1.CancelJobRequest{JobId: "job-1", Reason: strings.Repeat("x", 64<<10)})
	wantStatus(t, err, codes.ResourceExhausted, "", "larger than max")
}
