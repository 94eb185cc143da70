package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/packagerun"
)

// Packages configures a runner that runs packages.
type Packages struct {
	Executor *packagerun.Executor
	// Upload uploads the file at path to the tracker.
	Upload func(ctx context.Context, role, path string) (*tilthv1.ArtifactRef, error)
	// Report reports the result of a run and retries transient errors.
	Report func(context.Context, *tilthv1.ReportRunRequest) error
}

// run runs the packages of a lease and reports the result. It returns an error if reporting failed or ctx
// ended. The lease is then still open.
func (h *Handler) run(ctx context.Context, lease *tilthv1.LeaseToken, job *tilthv1.Job) error {
	if h.Packages == nil {
		return errors.New("runner: the lease is for running packages, which this runner does not")
	}
	report := &tilthv1.ReportRunRequest{Lease: lease}
	result, err := h.runPackages(ctx, job.GetSpec().GetRun())
	var failed *packagerun.Failure
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("runner: job %s: %w", job.GetId(), context.Cause(ctx))
	case err == nil:
		report.Result = result
	case errors.As(err, &failed):
		report.Failure = agent.FailureMessage(failed.Error())
	default:
		report.InfraError = agent.FailureClass(err, tilthv1.ErrorClass_ERROR_CLASS_DEVICE_INFRA)
		report.InfraMessage = agent.FailureMessage(err.Error())
	}
	if err != nil {
		h.Logger.Warn("packages not run", "job", job.GetId(), "error", err)
	}
	return h.Packages.Report(ctx, report)
}

func (h *Handler) runPackages(ctx context.Context, spec *tilthv1.RunSpec) (*tilthv1.RunResult, error) {
	request := packagerun.Request{Repeat: int(spec.GetRepeat()), Number: int(spec.GetNumber()), Profile: int(spec.GetProfile())}
	for _, p := range spec.GetPackages() {
		path, release, err := h.download(ctx, p.GetArtifact())
		if err != nil {
			return nil, err
		}
		defer release()
		request.Packages = append(request.Packages, packagerun.Package{Path: path, Name: p.GetName()})
	}
	if spec.GetInputs() != nil {
		path, release, err := h.download(ctx, spec.GetInputs())
		if err != nil {
			return nil, err
		}
		defer release()
		request.Inputs = path
	}
	if spec.GetOutputs() {
		file, err := h.outputs()
		if err != nil {
			return nil, fmt.Errorf("runner: keeping outputs: %w", err)
		}
		defer os.Remove(file)
		request.Outputs = file
	}
	ran, err := h.alone(ctx, request, packagerun.Limits{Time: spec.GetLimit().AsDuration(), MemoryBytes: sandbox.MachineMemory() / 4 * 3})
	if err != nil {
		return nil, err
	}
	return h.result(ctx, request, ran)
}

func (h *Handler) download(ctx context.Context, ref *tilthv1.ArtifactRef) (path string, release func(), err error) {
	if path, release, err = h.Artifacts.Download(ctx, ref); err != nil {
		return "", nil, &agent.FarmError{Cause: fmt.Errorf("runner: fetching the %s: %w", ref.GetRole(), err)}
	}
	return path, release, nil
}

// outputs creates an empty file.
func (h *Handler) outputs() (string, error) {
	f, err := os.CreateTemp(h.Scratch, "outputs-*.npz")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// alone runs packages while nothing else runs on this machine.
func (h *Handler) alone(ctx context.Context, request packagerun.Request, limits packagerun.Limits) (ran *packagerun.Result, err error) {
	err = h.holding(ctx, h.Lock, func() error {
		ran, err = h.Packages.Executor.Run(ctx, request, limits)
		return err
	})
	return ran, err
}

// result uploads the outputs, if any, and returns the result to report.
func (h *Handler) result(ctx context.Context, request packagerun.Request, ran *packagerun.Result) (*tilthv1.RunResult, error) {
	result := &tilthv1.RunResult{Device: h.Device}
	for _, p := range ran.Packages {
		result.Packages = append(result.Packages, &tilthv1.PackageResult{SamplesSeconds: p.Samples, Profile: p.Profile, Manifest: p.Manifest})
	}
	if request.Outputs == "" {
		return result, nil
	}
	var err error
	if result.Outputs, err = h.Packages.Upload(ctx, "outputs", request.Outputs); err != nil {
		return nil, &agent.FarmError{Cause: fmt.Errorf("runner: %w", err)}
	}
	return result, nil
}
