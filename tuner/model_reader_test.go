package tuner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// reads implements Reader.
type reads func(work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error)

// Read implements Reader.
func (r reads) Read(_ context.Context, work *tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
	return r(work)
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// model submits a job with a model, leases the model to a named tuner, and returns the job's id.
func (f *farm) model(name string) (id string, lease *tilthv1.LeaseWorkResponse) {
	f.t.Helper()
	agents, session := tilthv1.NewAgentServiceClient(f.conn), ""
	for _, spec := range []*tilthv1.AgentSpec{
		{Name: "runner", Kind: tilthv1.AgentKind_AGENT_KIND_RUNNER, DeviceClasses: []*tilthv1.DeviceClass{{Name: "x86"}}},
		{Name: "builder", Kind: tilthv1.AgentKind_AGENT_KIND_BUILDER, Toolchains: []string{"clang-19"}},
		{Name: name, Kind: tilthv1.AgentKind_AGENT_KIND_TUNER, Tuners: Names(), Capabilities: []string{"model"}},
	} {
		joined, err := agents.Join(f.ctx, &tilthv1.JoinRequest{Spec: spec})
		check(f.t, err)
		session = joined.GetSession()
	}
	stream, err := tilthv1.NewArtifactServiceClient(f.conn).UploadArtifact(f.ctx)
	check(f.t, err)
	check(f.t, stream.Send(&tilthv1.UploadArtifactRequest{Digest: digestOf("model"), SizeBytes: 5, Data: []byte("model")}))
	_, err = stream.CloseAndRecv()
	check(f.t, err)
	submitted, err := tilthv1.NewJobServiceClient(f.conn).SubmitJob(f.ctx, &tilthv1.SubmitJobRequest{RequestId: name, Spec: &tilthv1.JobSpec{
		Name: "net", Tuner: "random", Budget: &tilthv1.Budget{Trials: 1}, Target: &tilthv1.TargetSpec{DeviceClass: "x86"},
		Model: &tilthv1.ModelSpec{File: &tilthv1.ArtifactRef{Digest: digestOf("model")}},
	}})
	check(f.t, err)
	work, err := agents.LeaseWork(f.ctx, &tilthv1.LeaseWorkRequest{Session: session})
	check(f.t, err)
	if work.GetModel() == nil {
		f.t.Fatalf("leased is %v", work)
	}
	return submitted.GetJob().GetId(), work
}

// TestTunerReportsTheTasksOrTheFailureOfAModel covers tasks, an unsuitable model, and a model that the tuner could
// not read.
func TestTunerReportsTheTasksOrTheFailureOfAModel(t *testing.T) {
	for name, c := range map[string]struct {
		read  reads
		state tilthv1.JobState
		want  string
	}{
		"tasks": {
			read:  func(*tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) { return conv("conv"), nil },
			state: tilthv1.JobState_JOB_STATE_QUEUED, want: "tasks read the model: tasks: 1",
		},
		"a failure": {
			read: func(*tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
				return &tilthv1.ReportModelRequest{Failure: "model net: no ONNX"}, nil
			},
			state: tilthv1.JobState_JOB_STATE_FAILED, want: "model net: no ONNX",
		},
		"no process": {
			read: func(*tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) {
				return nil, errors.New("no process\nstarts")
			},
			state: tilthv1.JobState_JOB_STATE_READING, want: "no process",
		},
		"tasks that the tracker refuses": {
			read:  func(*tilthv1.ModelWork) (*tilthv1.ReportModelRequest, error) { return conv("another"), nil },
			state: tilthv1.JobState_JOB_STATE_FAILED, want: "the tracker refuses the model's tasks: tasks[0].workload_digest: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFarm(t)
			id, work := f.model(name)
			check(t, NewHandler(Config{Conn: f.conn, Reader: c.read}).Handle(t.Context(), work))
			got, err := tilthv1.NewJobServiceClient(f.conn).GetJob(f.ctx, &tilthv1.GetJobRequest{JobId: id})
			check(t, err)
			if j := got.GetJob(); j.GetState() != c.state || !strings.HasPrefix(j.GetReason(), c.want) || strings.Contains(j.GetReason(), "\n") {
				t.Errorf("the job is %v: %q, want %v: %q", j.GetState(), j.GetReason(), c.state, c.want)
			}
		})
	}
}

// conv returns a report of one task, with the digest of the named workload.
func conv(of string) *tilthv1.ReportModelRequest {
	return &tilthv1.ReportModelRequest{
		Target: &tilthv1.TargetSpec{Fingerprint: "cpu", Toolchain: "clang-19", DeviceClass: "x86"},
		Tasks:  []*tilthv1.TaskSpec{{Name: "conv", Workload: []byte("conv"), WorkloadDigest: digestOf(of), Weight: 1}},
	}
}

func TestTunerThatReadsNoModelsSaysSo(t *testing.T) {
	err := NewHandler(Config{}).Handle(t.Context(), &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Model{Model: &tilthv1.ModelWork{}}})
	if err == nil || !strings.Contains(err.Error(), "which this tuner does not") {
		t.Errorf("got %v", err)
	}
}
