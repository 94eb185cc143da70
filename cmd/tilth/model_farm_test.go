package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/client"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// TestModelIsTunedWithoutACompilerOfTheClient checks that the job has the same tasks as with `tilth jobs submit`,
// and is tuned.
func TestModelIsTunedWithoutACompilerOfTheClient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes, which tunes two jobs")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	f := startFarm(t)
	f.awaitAgents(ctx)
	model := filepath.Join(f.dir, "mlp.onnx")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	want := f.wouldSubmit(ctx, model)

	garbage := filepath.Join(f.dir, "garbage.onnx")
	if err := os.WriteFile(garbage, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := f.submitModel(ctx, garbage, want)
	f.tilth(ctx, "jobs", "watch", broken, "--tracker", f.tracker).mustFail("failed: model mlp: read model from the artifact: ")

	if id := f.submitFromPython(ctx, model, want.GetTarget().GetDeviceClass()); id != "" {
		f.wantTuned(ctx, id, want)
	}
	f.wantSeveralTuned(ctx, model)
}

// wantSeveralTuned checks a job of two weighted models with equal tasks and with seeds from a log.
func (f *farmUnderTest) wantSeveralTuned(ctx context.Context, model string) {
	f.t.Helper()
	const log = "../../tuner/importedseeds/testdata/autotvm.log"
	open := filepath.Join(f.dir, "open.onnx")
	f.tilth(ctx, "model", "mlp", "--open", "-o", open).mustRun()
	f.tilth(ctx, "records", "import", "--format", "autotvm", log).mustRun()
	want := f.wouldSubmit(ctx, model, open, "--weight", "3,0.5", "--shape", "batch=1")
	if first := want.GetTasks()[0]; first.GetWeight() != 3.5 || len(first.GetSeeds()) == 0 {
		f.t.Fatalf("the first task is %v", first)
	}
	spec := proto.CloneOf(want)
	spec.Tasks, spec.Target = nil, &tilthv1.TargetSpec{DeviceClass: want.GetTarget().GetDeviceClass()}
	spec.Model = &tilthv1.ModelSpec{Weight: 3, Others: []*tilthv1.OtherModel{{
		Name: "open", Weight: 0.5, Shapes: map[string]*tilthv1.Extents{"batch": {Extents: []int64{1}}},
	}}}
	j, err := f.client.SubmitModels(ctx, client.ModelFiles{
		Models: []string{model, open}, Seeds: []client.SeedFile{{Path: log, Format: tilthv1.SeedFormat_SEED_FORMAT_AUTOTVM}},
	}, spec)
	if err != nil {
		f.t.Fatal(err)
	}
	f.wantTuned(ctx, j.GetId(), want)
}

// wouldSubmit returns the job that a client with a compiler submits.
func (f *farmUnderTest) wouldSubmit(ctx context.Context, models ...string) *tilthv1.JobSpec {
	f.t.Helper()
	args := []string{"jobs", "submit", "--tracker", f.tracker, "--device", "test/runner", "--trials", "4", "--dry-run"}
	p := f.tilth(ctx, append(args, models...)...)
	p.mustRun()
	var request tilthv1.SubmitJobRequest
	if err := protojson.Unmarshal(p.stdout.Bytes(), &request); err != nil {
		f.t.Fatal(err)
	}
	return request.GetSpec()
}

// submitModel submits a model file for the same job.
func (f *farmUnderTest) submitModel(ctx context.Context, path string, like *tilthv1.JobSpec) string {
	f.t.Helper()
	spec := proto.CloneOf(like)
	spec.Tasks, spec.Target = nil, &tilthv1.TargetSpec{DeviceClass: like.GetTarget().GetDeviceClass()}
	j, err := f.client.SubmitModel(ctx, path, spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return j.GetId()
}

// submitFromPython submits a model file with the program in docs/api.md. It returns "" if Python lacks the required
// packages.
func (f *farmUnderTest) submitFromPython(ctx context.Context, path, class string) (id string) {
	f.t.Helper()
	const python = "/usr/bin/python3"
	plugin, err := exec.LookPath("grpc_python_plugin")
	if err != nil || exec.Command(python, "-c", "import grpc, google.protobuf").Run() != nil {
		f.t.Log("not tried from Python: install python3-grpcio, python3-protobuf and protobuf-compiler-grpc")
		return ""
	}
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		f.t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if program == nil {
		f.t.Fatal("docs/api.md has no program")
	}
	protos, err := filepath.Glob("../../proto/tilth/v1/*.proto")
	if err != nil {
		f.t.Fatal(err)
	}
	protoc := exec.CommandContext(ctx, "protoc", append([]string{
		"-I../../proto", "--python_out=" + f.dir, "--grpc_python_out=" + f.dir, "--plugin=protoc-gen-grpc_python=" + plugin}, protos...)...)
	if said, err := protoc.CombinedOutput(); err != nil {
		f.t.Fatalf("%v\n%s", err, said)
	}
	run := exec.CommandContext(ctx, python, "-c", string(program[1]), f.tracker, class, path)
	run.Dir, run.Env = f.dir, append(os.Environ(), "PYTHONPATH="+f.dir, "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	run.Stderr = &stderr
	said, err := run.Output()
	if err != nil {
		f.t.Fatalf("%v\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(said))
}

// wantTuned waits until a job is done and checks that its tasks equal another job's.
func (f *farmUnderTest) wantTuned(ctx context.Context, id string, want *tilthv1.JobSpec) {
	f.t.Helper()
	watch := f.tilth(ctx, "jobs", "watch", id, "--tracker", f.tracker)
	watch.mustRun()
	if !strings.Contains(watch.stdout.String(), want.GetTasks()[0].GetName()) {
		f.t.Errorf("the watch does not tell of the tasks:\n%s", watch.stdout.String())
	}
	j, err := f.client.Job(ctx, id)
	if err != nil {
		f.t.Fatal(err)
	}
	spec := j.GetSpec()
	if !proto.Equal(spec.GetTarget(), want.GetTarget()) || len(spec.GetTasks()) != len(want.GetTasks()) {
		f.t.Fatalf("the job is %v, want %v", spec, want)
	}
	for i, task := range spec.GetTasks() {
		if !proto.Equal(task, want.GetTasks()[i]) {
			f.t.Errorf("task %d is %v, want %v", i, task, want.GetTasks()[i])
		}
	}
	var trials uint32
	for _, p := range j.GetProgress() {
		trials += p.GetTrials()
	}
	if j.GetState() != tilthv1.JobState_JOB_STATE_DONE || trials != 4 {
		f.t.Errorf("the job is %v (%s) after %d trials", j.GetState(), j.GetReason(), trials)
	}
	listed, _, err := f.client.ListJobs(ctx, client.JobFilter{Limit: 1})
	if err != nil || len(listed) != 1 {
		f.t.Errorf("listed are %v, %v", listed, err)
	}
}
