package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Packages configures a builder that makes packages.
type Packages struct {
	// Make compiles the model of a job into the file output. failure is the reason if any builder would fail.
	Make func(ctx context.Context, job *tilthv1.Job, t *target.Target, tc *toolchain.Toolchain, output string) (failure string, err error)
	// Report reports the result of a lease and retries transient errors.
	Report func(context.Context, *tilthv1.ReportRunRequest) error
}

// makePackage makes the package of a lease and reports it. It returns an error if reporting failed or ctx ended. The
// lease is then still open.
func (h *Handler) makePackage(ctx context.Context, lease *tilthv1.LeaseToken, job *tilthv1.Job) error {
	if h.Packages == nil {
		return errors.New("builder: the lease is for making a package, which this builder does not")
	}
	report := &tilthv1.ReportRunRequest{Lease: lease}
	err := h.packageOf(ctx, job, report)
	if ctx.Err() != nil {
		return fmt.Errorf("builder: job %s: %w", job.GetId(), context.Cause(ctx))
	}
	if _, faulty := classOf(err); faulty {
		report.Failure = agent.FailureMessage(err.Error())
	} else if err != nil {
		report.InfraError = agent.FailureClass(err, tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA)
		report.InfraMessage = agent.FailureMessage(err.Error())
	}
	if why := report.GetFailure() + report.GetInfraMessage(); why != "" {
		h.Logger.Warn("package not made", "job", job.GetId(), "error", why)
	}
	return h.Packages.Report(ctx, report)
}

// packageOf makes and uploads the package of a job, and fills the report with it or with the failure of the model.
func (h *Handler) packageOf(ctx context.Context, job *tilthv1.Job, report *tilthv1.ReportRunRequest) error {
	machine, compiler, err := h.target(job.GetSpec().GetTarget())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(h.Scratch, "package-*")
	if err != nil {
		return fmt.Errorf("builder: making a scratch folder: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "package.tar")
	failure, err := h.Packages.Make(ctx, job, machine, compiler.Toolchain, path)
	if err != nil || failure != "" {
		report.Failure = agent.FailureMessage(failure)
		return err
	}
	made, err := h.Artifacts.Upload(ctx, "package", path)
	if err != nil {
		return &agent.FarmError{Cause: fmt.Errorf("builder: uploading the package: %w", err)}
	}
	report.Result = &tilthv1.RunResult{Outputs: made}
	return nil
}
