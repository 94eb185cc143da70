package builder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Artifacts stores files for runners.
type Artifacts interface {
	Upload(ctx context.Context, role, path string) (*tilthv1.ArtifactRef, error)
}

// Config configures a Handler.
type Config struct {
	Compiler  *Compiler
	Artifacts Artifacts
	// Report submits the result of a lease and retries transient errors.
	Report func(context.Context, *tilthv1.ReportBuildRequest) error
	// Lock, if set, is held while compiling, so that nothing is timed on this machine meanwhile.
	Lock func(context.Context) (release func(), err error)
	// Packages, if set, enables making packages.
	Packages *Packages
	// Scratch is the folder for temporary files.
	Scratch string
	Logger  *slog.Logger
}

// Handler does the work of the builder agent: one leased batch or package per call.
type Handler struct{ Config }

// NewHandler returns a handler with the given configuration.
func NewHandler(config Config) *Handler { return &Handler{config} }

// Handle builds the batch of a lease, or makes its package, and reports it. It returns an error if reporting failed or
// ctx ended. The lease is then still open.
func (h *Handler) Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	if run := work.GetRun(); run != nil {
		return h.makePackage(ctx, work.GetLease(), run.GetJob())
	}
	batch := work.GetBuild()
	if batch == nil {
		return errors.New("builder: the lease is not for building")
	}
	for attempt := 1; ; attempt++ {
		report := &tilthv1.ReportBuildRequest{Lease: work.GetLease()}
		err := h.build(ctx, batch, report)
		if ctx.Err() != nil {
			return fmt.Errorf("builder: batch %s: %w", batch.GetBatchId(), context.Cause(ctx))
		}
		if err != nil {
			h.Logger.Warn("batch not built", "batch", batch.GetBatchId(), "error", err)
			report.Outcomes, report.Artifacts = nil, nil
			report.InfraError = agent.FailureClass(err, tilthv1.ErrorClass_ERROR_CLASS_BUILD_INFRA)
			report.InfraMessage = agent.FailureMessage(err.Error())
		}
		err = h.Report(ctx, report)
		if !agent.MissingArtifact(err) || attempt == maxAttempts {
			return err
		}
		h.Logger.Warn("the tracker lost artifacts of the batch, building it again", "batch", batch.GetBatchId())
	}
}

// maxAttempts limits the builds of a batch when the tracker evicts its artifacts before the report arrives.
const maxAttempts = 3

// build fills the report with outcomes and artifacts.
func (h *Handler) build(ctx context.Context, work *tilthv1.BuildWork, report *tilthv1.ReportBuildRequest) error {
	machine, compiler, err := h.target(work.GetTarget())
	if err != nil {
		return err
	}
	workload, err := expr.Parse(string(work.GetTask().GetWorkload()))
	if err != nil {
		rejectAll(work, err, report)
		return nil
	}
	dir, err := os.MkdirTemp(h.Scratch, "batch-*")
	if err != nil {
		return fmt.Errorf("builder: making a scratch folder: %w", err)
	}
	defer os.RemoveAll(dir)
	built, err := h.compile(ctx, compiler, dir, Batch{Workload: workload, Target: machine, Candidates: candidates(work)})
	if err != nil {
		return err
	}
	for _, o := range built.Outcomes {
		report.Outcomes = append(report.Outcomes, &tilthv1.BuildOutcome{Candidate: o.Candidate, Error: o.Error, Message: o.Message,
			BuildSeconds: o.Build.Seconds()})
	}
	report.Artifacts, err = h.upload(ctx, built)
	return err
}

// target decodes the target and returns the compiler with the toolchain that it requires. It refuses targets
// of another toolchain, because their records would not be comparable.
func (h *Handler) target(spec *tilthv1.TargetSpec) (*target.Target, *Compiler, error) {
	t, err := target.Decode(spec.GetDescriptor_())
	if err != nil {
		return nil, nil, fmt.Errorf("builder: the job's target: %w", err)
	}
	c := *h.Compiler
	if c.Toolchain, err = c.Toolchain.As(spec.GetToolchain(), t); err != nil {
		return nil, nil, fmt.Errorf("builder: %w", err)
	}
	return t, &c, nil
}

func rejectAll(work *tilthv1.BuildWork, err error, report *tilthv1.ReportBuildRequest) {
	for _, c := range work.GetCandidates() {
		report.Outcomes = append(report.Outcomes, &tilthv1.BuildOutcome{Candidate: c.GetDigest(),
			Error: tilthv1.ErrorClass_ERROR_CLASS_BAD_SCHEDULE, Message: agent.FailureMessage(err.Error())})
	}
}

func candidates(work *tilthv1.BuildWork) []Candidate {
	var list []Candidate
	for _, c := range work.GetCandidates() {
		list = append(list, Candidate{Digest: c.GetDigest(), Trace: c.GetTrace()})
	}
	return list
}

func (h *Handler) compile(ctx context.Context, c *Compiler, dir string, b Batch) (*Built, error) {
	if h.Lock != nil {
		release, err := h.Lock(ctx)
		if err != nil {
			return nil, fmt.Errorf("builder: waiting for the machine: %w", err)
		}
		defer release()
	}
	return c.Build(ctx, dir, b)
}

func (h *Handler) upload(ctx context.Context, built *Built) ([]*tilthv1.ArtifactRef, error) {
	type file struct{ role, path string }
	var files []file
	for _, path := range built.Objects {
		files = append(files, file{wire.RoleCandidates, path})
	}
	if len(files) > 0 {
		files = append(files, file{wire.RoleReference, built.Reference}, file{wire.RoleHarness, built.Harness})
	}
	var refs []*tilthv1.ArtifactRef
	for _, f := range files {
		ref, err := h.Artifacts.Upload(ctx, f.role, f.path)
		if err != nil {
			return nil, &agent.FarmError{Cause: fmt.Errorf("builder: uploading the %s: %w", f.role, err)}
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

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
