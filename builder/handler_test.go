package builder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

// These agents satisfy the farm's interfaces.
var (
	_ Artifacts        = (*artifact.Client)(nil)
	_ runner.Artifacts = (*artifact.Client)(nil)
	_ agent.Handler    = (*Handler)(nil)
	_ agent.Handler    = (*runner.Handler)(nil)
)

// folder stores artifacts where runners on this machine can read them.
type folder struct {
	paths map[string]string
	dir   string
	fault error
}

func (f *folder) Upload(_ context.Context, role, path string) (*tilthv1.ArtifactRef, error) {
	if f.fault != nil {
		return nil, f.fault
	}
	digest := fmt.Sprintf("%s-%d", role, len(f.paths))
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f.paths[digest] = f.dir + "/" + digest
	return &tilthv1.ArtifactRef{Role: role, Digest: digest}, os.WriteFile(f.paths[digest], data, 0o600)
}

func (f *folder) Download(_ context.Context, ref *tilthv1.ArtifactRef) (string, func(), error) {
	if f.fault != nil {
		return "", nil, f.fault
	}
	return f.paths[ref.GetDigest()], func() {}, nil
}

// farm connects a builder and a runner directly.
type farm struct {
	builder  *Handler
	runner   *runner.Handler
	folder   *folder
	built    *tilthv1.ReportBuildRequest
	measured []*tilthv1.ReportMeasurementsRequest
	spec     *tilthv1.TargetSpec
}

func newFarm(t *testing.T, c *Compiler, machine *target.Target) *farm {
	t.Helper()
	machine = machine.WithToolchain(c.Toolchain.Name)
	f := &farm{folder: &folder{paths: map[string]string{}, dir: t.TempDir()}}
	f.spec = &tilthv1.TargetSpec{Fingerprint: machine.Fingerprint(), Descriptor_: machine.Encode(), Toolchain: c.Toolchain.Name, DeviceClass: machine.DeviceClass()}
	logger := slog.New(slog.DiscardHandler)
	f.builder = NewHandler(Config{Compiler: c, Artifacts: f.folder, Scratch: t.TempDir(), Logger: logger,
		Report: func(_ context.Context, r *tilthv1.ReportBuildRequest) error { f.built = r; return nil }})
	classes := []*tilthv1.DeviceClass{{Name: machine.DeviceClass(), Descriptor_: machine.Encode()}}
	f.runner = runner.NewHandler(runner.Config{Device: "board-1", Classes: classes, Artifacts: f.folder, Scratch: t.TempDir(), Logger: logger,
		Report: func(_ context.Context, r *tilthv1.ReportMeasurementsRequest) error {
			f.measured = append(f.measured, r)
			return nil
		}})
	return f
}

// build sends candidates of product to the builder.
func (f *farm) build(t *testing.T, list []Candidate) {
	t.Helper()
	work := &tilthv1.BuildWork{BatchId: "b1", Target: f.spec, Task: &tilthv1.TaskSpec{Workload: []byte(product(t).Text())}}
	for _, c := range list {
		work.Candidates = append(work.Candidates, &tilthv1.Candidate{Digest: c.Digest, Trace: c.Trace})
	}
	lease := &tilthv1.LeaseWorkResponse{Lease: &tilthv1.LeaseToken{Subject: "b1"}, Work: &tilthv1.LeaseWorkResponse_Build{Build: work}}
	if err := f.builder.Handle(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// measure sends the built objects to the runner.
func (f *farm) measure(t *testing.T, list []Candidate) {
	t.Helper()
	work := &tilthv1.MeasureWork{BatchId: "b1", Target: f.spec, Artifacts: f.built.GetArtifacts()}
	for _, c := range list {
		work.Candidates = append(work.Candidates, &tilthv1.Candidate{Digest: c.Digest})
	}
	lease := &tilthv1.LeaseWorkResponse{Lease: &tilthv1.LeaseToken{Subject: "b1"}, Work: &tilthv1.LeaseWorkResponse_Measure{Measure: work}}
	if err := f.runner.Handle(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

func TestBatchGoesFromTracesToMeasurements(t *testing.T) {
	f := newFarm(t, newCompiler(t, ""), native(t))
	list := tiled(t, product(t), 1, 2, 4, 8)
	f.build(t, list)
	if len(f.built.GetOutcomes()) != 4 || f.built.GetInfraError() != 0 {
		t.Fatalf("built: %v", f.built)
	}
	f.measure(t, list)
	seen := map[string]bool{}
	for _, r := range f.measured {
		for _, m := range r.GetMeasurements() {
			seen[m.GetCandidate().GetDigest()] = true
			if m.GetError() != none || m.GetLatencySeconds() <= 0 || m.GetDevice() != "board-1" || m.GetAt() == nil {
				t.Errorf("measured %v", m)
			}
		}
	}
	if len(seen) != 4 || f.measured[0].GetInfraError() != 0 {
		t.Errorf("%d candidates measured: %v", len(seen), f.measured)
	}
}

func TestBatchWithoutGoodCandidatesHasNoArtifacts(t *testing.T) {
	f := newFarm(t, newCompiler(t, ""), native(t))
	f.build(t, []Candidate{{"abc", []byte("hello")}})
	if len(f.built.GetArtifacts()) != 0 || f.built.GetOutcomes()[0].GetError() != badSchedule {
		t.Errorf("built %v", f.built)
	}
}

func TestBadWorkloadIsTheCandidatesFault(t *testing.T) {
	f := newFarm(t, newCompiler(t, ""), native(t))
	work := &tilthv1.BuildWork{Target: f.spec, Task: &tilthv1.TaskSpec{Workload: []byte("hello")}, Candidates: []*tilthv1.Candidate{{Digest: "abc"}}}
	if err := f.builder.Handle(t.Context(), &tilthv1.LeaseWorkResponse{Work: &tilthv1.LeaseWorkResponse_Build{Build: work}}); err != nil {
		t.Fatal(err)
	}
	if o := f.built.GetOutcomes()[0]; o.GetError() != badSchedule || !strings.Contains(o.GetMessage(), "workload") {
		t.Errorf("built %v", o)
	}
}

func TestInfraFailuresAreReportedAsSuch(t *testing.T) {
	list := tiled(t, product(t), 1, 2)
	t.Run("compiler gone", func(t *testing.T) {
		script := sabotaged(t, nil)
		f := newFarm(t, newCompiler(t, script), native(t))
		if err := os.Remove(script); err != nil {
			t.Fatal(err)
		}
		f.build(t, list)
		f.expectBuild(t, tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, "cannot run")
	})
	t.Run("other toolchain", func(t *testing.T) {
		f := newFarm(t, newCompiler(t, ""), native(t))
		f.spec.Toolchain = "clang-1.0.0"
		f.build(t, list)
		f.expectBuild(t, tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA, "the job wants clang-1.0.0")
	})
	t.Run("upload fails", func(t *testing.T) {
		f := newFarm(t, newCompiler(t, ""), native(t))
		f.folder.fault = errors.New("tracker's disk is full")
		f.build(t, list)
		f.expectBuild(t, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, "disk is full")
	})
	t.Run("download fails", func(t *testing.T) {
		f := newFarm(t, newCompiler(t, ""), native(t))
		f.build(t, list)
		f.folder.fault = errors.New("artifact evicted")
		f.measure(t, list)
		f.expectMeasure(t, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, "artifact evicted")
	})
	t.Run("other device", func(t *testing.T) {
		f := newFarm(t, newCompiler(t, ""), native(t))
		f.build(t, list)
		f.spec.DeviceClass = "other"
		f.measure(t, list)
		f.expectMeasure(t, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, "wants device class other, which board-1 is not")
	})
	t.Run("candidate in no artifact", func(t *testing.T) {
		f := newFarm(t, newCompiler(t, ""), native(t))
		f.build(t, list[:1])
		f.measure(t, list)
		f.expectMeasure(t, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA, "1 candidates of the batch are in none")
	})
	t.Run("no harness", func(t *testing.T) {
		f := newFarm(t, newCompiler(t, ""), native(t))
		f.build(t, list)
		f.built.Artifacts = f.built.GetArtifacts()[:len(f.built.GetArtifacts())-1]
		f.measure(t, list)
		f.expectMeasure(t, tilthv1.ErrorClass_ERROR_CLASS_FARM_INFRA, "lacks artifacts")
	})
}

func (f *farm) expectBuild(t *testing.T, class tilthv1.ErrorClass, message string) {
	t.Helper()
	if f.built.GetInfraError() != class || !strings.Contains(f.built.GetInfraMessage(), message) || len(f.built.GetOutcomes()) != 0 {
		t.Errorf("built %v", f.built)
	}
}

func (f *farm) expectMeasure(t *testing.T, class tilthv1.ErrorClass, message string) {
	t.Helper()
	last := f.measured[len(f.measured)-1]
	if last.GetInfraError() != class || !strings.Contains(last.GetInfraMessage(), message) {
		t.Errorf("measured %v", last)
	}
}

func TestEvictedArtifactsAreUploadedAgain(t *testing.T) {
	f := newFarm(t, newCompiler(t, ""), native(t))
	reports := 0
	f.builder.Report = func(context.Context, *tilthv1.ReportBuildRequest) error {
		if reports++; reports < 2 {
			return wire.Refuse(codes.FailedPrecondition, wire.ReasonMissingArtifact, "artifact evicted")
		}
		return nil
	}
	f.build(t, tiled(t, product(t), 1))
	if reports != 2 || len(f.folder.paths) != 6 {
		t.Errorf("%d reports, %d uploads", reports, len(f.folder.paths))
	}
}

func TestHandlersRefuseForeignWork(t *testing.T) {
	f := newFarm(t, newCompiler(t, os.Getenv(toolchain.Variable)), native(t))
	if err := f.builder.Handle(t.Context(), &tilthv1.LeaseWorkResponse{}); err == nil {
		t.Error("the builder took a lease without a batch")
	}
	if err := f.runner.Handle(t.Context(), &tilthv1.LeaseWorkResponse{}); err == nil {
		t.Error("the runner took a lease without a batch")
	}
}
