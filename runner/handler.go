package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner/packagerun"
)

// Artifacts fetches builds. The file stays at path until release is called.
type Artifacts interface {
	Download(ctx context.Context, ref *tilthv1.ArtifactRef) (path string, release func(), err error)
}

// Config configures a Handler.
type Config struct {
	// Device names this device in measurements.
	Device string
	// Classes lists the device classes measured here; see Classes.
	Classes []*tilthv1.DeviceClass
	// Reach is the device that candidates run on; nil means the processor.
	Reach *backend.Device
	// Line opens the link to a linked device; see Plan.Line.
	Line func(ctx context.Context) (*os.File, error)
	// Emulator, if set, is the command that runs programs of the target.
	Emulator  []string
	Artifacts Artifacts
	// Report submits measurements and retries transient errors.
	Report func(context.Context, *tilthv1.ReportMeasurementsRequest) error
	// Meter measures energy for targets with that objective; nil if unavailable.
	Meter *EnergyMeter
	// Lock, if set, is held while timing, so that nothing else runs on this machine meanwhile. Compute, if set, is
	// held while a reference is computed, so that nothing is timed meanwhile.
	Lock, Compute func(context.Context) (release func(), err error)
	// Scratch is a private folder for temporary files and reference results.
	Scratch string
	// Sandbox isolates harnesses; nil means limits only.
	Sandbox *sandbox.Sandbox
	Limits  Limits
	// Watch, if set, calibrates the device before and after finalists.
	Watch *Watch
	// Packages, if set, enables running packages here.
	Packages *Packages
	// Seed selects the verification data.
	Seed   uint64
	Logger *slog.Logger
}

// Handler does the work of the runner agent: one leased batch per call.
type Handler struct {
	Config
	mu sync.Mutex
	// calibrations holds the calibrations of each device class, separately by the origin of the harness that
	// reports them.
	calibrations map[string]*Calibration
	pool         Pool
}

// Close ends the idle processes.
func (h *Handler) Close() { h.pool.Close() }

// NewHandler returns a handler with the given configuration.
func NewHandler(config Config) *Handler {
	return &Handler{Config: config, calibrations: map[string]*Calibration{}}
}

// maxCalibrations bounds the remembered calibrations. One more resets them all.
const maxCalibrations = 64

// calibration returns the calibrations of a device, by its name within its origin.
func (h *Handler) calibration(device string) *Calibration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calibrations[device] == nil {
		if len(h.calibrations) >= maxCalibrations {
			clear(h.calibrations)
		}
		h.calibrations[device] = &Calibration{}
	}
	return h.calibrations[device]
}

// Handle measures the batch of a lease and reports the outcomes in groups, or runs the packages of a lease.
// It returns an error if reporting failed or ctx ended. The lease is then still open.
func (h *Handler) Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	if run := work.GetRun(); run != nil {
		return h.run(ctx, work.GetLease(), run.GetJob())
	}
	batch := work.GetMeasure()
	if batch == nil {
		return errors.New("runner: the lease is not for measuring")
	}
	s := newSheet(h, work.GetLease(), batch)
	err := h.measure(ctx, batch, s)
	if ctx.Err() != nil {
		return fmt.Errorf("runner: batch %s: %w", batch.GetBatchId(), context.Cause(ctx))
	}
	if reporting, is := errors.AsType[*reportError](err); is {
		return reporting.cause
	}
	if err == nil && len(s.open) > 0 {
		err = fmt.Errorf("runner: %d candidates of the batch are in none of its artifacts", len(s.open))
	}
	if err != nil {
		h.Logger.Warn("batch not measured", "batch", batch.GetBatchId(), "error", err)
		s.infra(err)
	}
	return s.flush(ctx)
}

func (h *Handler) measure(ctx context.Context, batch *tilthv1.MeasureWork, s *batchReport) error {
	machine, err := h.target(batch.GetTarget())
	if err != nil {
		return err
	}
	files, err := h.fetch(ctx, batch)
	if err != nil {
		return err
	}
	defer files.release()
	plan := Plan{Device: h.Reach, Line: h.Line, Harness: files.harness, Reference: files.reference, Emulator: h.Emulator, Threads: machine.Threads(),
		CPUs: h.affinity(machine), Seed: h.Seed, Candidates: files.candidates, Finalists: batch.GetMode() == tilthv1.BatchMode_BATCH_MODE_FINALISTS,
		ReferenceCache: files.results, BestSeconds: batch.GetBestSeconds(), BestSamples: batch.GetBest().GetSamplesSeconds(),
		Calibration: h.calibration(files.origin.device(batch.GetTarget().GetDeviceClass())), Sandbox: h.Sandbox, Limits: h.Limits,
		Pool: &h.pool, BuiltBy: batch.GetBuiltBy()}
	for _, c := range batch.GetCandidates() {
		plan.Kernels = append(plan.Kernels, c.GetDigest())
	}
	if machine.Objective == target.Energy {
		if plan.Meter = h.Meter; h.Meter == nil {
			return errors.New("runner: the job's objective is energy, and this device has no meter")
		}
	}
	if err := h.holding(ctx, h.Compute, func() error { return plan.prepare(ctx) }); err != nil {
		return err
	}
	return h.holding(ctx, h.Lock, func() error { return h.time(ctx, plan, batch.GetDriftLimit(), s) })
}

// holding calls do while it holds a lock, which may be nil.
func (h *Handler) holding(ctx context.Context, lock func(context.Context) (func(), error), do func() error) error {
	if lock != nil {
		release, err := lock(ctx)
		if err != nil {
			return fmt.Errorf("runner: waiting for the machine: %w", err)
		}
		defer release()
	}
	return do()
}

func (h *Handler) time(ctx context.Context, plan Plan, limit float64, s *batchReport) error {
	if plan.Finalists && h.Watch != nil && limit > 0 {
		return h.race(ctx, plan, limit, s)
	}
	return s.measure(ctx, plan)
}

// affinity returns the processors that candidates run on: those of the target's core class.
func (h *Handler) affinity(t *target.Target) []int {
	if h.Reach != nil || len(h.Emulator) > 0 {
		return nil
	}
	return t.Affinity()
}

// target decodes the target and refuses targets of other devices.
func (h *Handler) target(spec *tilthv1.TargetSpec) (*target.Target, error) {
	t, err := target.Decode(spec.GetDescriptor_())
	if err != nil {
		return nil, fmt.Errorf("runner: the job's target: %w", err)
	}
	class := t.DeviceClass()
	offered := slices.ContainsFunc(h.Classes, func(c *tilthv1.DeviceClass) bool { return c.GetName() == class })
	if spec.GetDeviceClass() != class || !offered {
		return nil, fmt.Errorf("runner: the job wants device class %s, which %s is not", spec.GetDeviceClass(), h.Device)
	}
	return t, nil
}

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
	var ran *packagerun.Result
	limits := packagerun.Limits{Time: spec.GetLimit().AsDuration(), MemoryBytes: sandbox.MachineMemory() / 4 * 3}
	err := h.holding(ctx, h.Lock, func() (err error) {
		ran, err = h.Packages.Executor.Run(ctx, request, limits)
		return err
	})
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
