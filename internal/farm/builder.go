package farm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// builderSlots is 1 because a batch already uses all compilers. Two concurrent batches were not faster, and
// each then appeared to cost twice as much.
const builderSlots = 1

// BuilderConfig configures a builder.
type BuilderConfig struct {
	AgentConfig
	Toolchain *toolchain.Toolchain
	// Parallel is the maximum number of concurrent compilers per batch; 0 means 1.
	Parallel int
	// Sandbox selects how to proceed when an isolation mechanism for compilers is unavailable; empty means
	// sandbox.BestEffort.
	Sandbox sandbox.Mode
	// OwnKernels allows hand-written kernels in jobs, which may include any file that the compiler can read.
	OwnKernels bool
	// Read, if set, enables making packages of the models of jobs. It is as in TunerConfig.
	Read []string
	// Built, if set, is called for each batch with the reason for its failure, or "".
	Built func(failure string)
}

// RunBuilder runs a builder until ctx ends.
func RunBuilder(ctx context.Context, cfg BuilderConfig) error {
	base, err := begin(cfg.AgentConfig, tilthv1.AgentKind_AGENT_KIND_BUILDER, "builder")
	if err != nil {
		return err
	}
	base.spec.Toolchains = cfg.Toolchain.Names()
	cache, err := builder.OpenCache(filepath.Join(cfg.CacheDir, "builds"), 0)
	if err != nil {
		return base.end(fmt.Errorf("builder: %w", err))
	}
	kept, err := builder.OpenObjectCache(filepath.Join(base.scratch, "kept"))
	if err != nil {
		return base.end(err)
	}
	metrics := NewBuilderMetrics(base.registry)
	box, err := openSandbox(cfg.Sandbox, base)
	if err != nil {
		return base.end(fmt.Errorf("builder: %w", err))
	}
	lock := base.meter.Lock(base.cfg.Lock.Compute)
	packages, err := base.packageMaker(ctx, cfg, box, lock)
	if err != nil {
		return errors.Join(base.end(fmt.Errorf("builder: %w", err)), box.Close())
	}
	send := reporter(cfg.Logger, "ReportBuild", tilthv1.NewBuildServiceClient(base.conn).ReportBuild)
	handler := builder.NewHandler(builder.Config{
		Compiler:  &builder.Compiler{Toolchain: cfg.Toolchain.In(box), Cache: cache, ObjectCache: kept, Parallel: cfg.Parallel, OwnKernels: cfg.OwnKernels},
		Artifacts: artifact.NewClient(base.conn, nil, cfg.Logger),
		Report: metrics.Report(func(ctx context.Context, report *tilthv1.ReportBuildRequest) error {
			if cfg.Built != nil {
				cfg.Built(report.GetInfraMessage())
			}
			return send(ctx, report)
		}),
		Lock:     lock,
		Packages: packages,
		Scratch:  base.scratch,
		Logger:   cfg.Logger,
	})
	err = base.run(ctx, handler, builderSlots)
	return errors.Join(err, box.Close())
}

// maxInitialFailures is the number of initial builds that must fail in the same way before a single-process farm
// gives up. It has no other builder, and waiting does not repair this machine.
const maxInitialFailures = 3

// buildFailureGuard stops a farm whose builds all fail in the same way.
type buildFailureGuard struct {
	// end is called once, with the failure.
	end func(error)

	mu       sync.Mutex
	settled  bool
	last     string
	failures int
}

// numbers matches the parts that differ between equal failures: batch numbers and names of temporary folders.
var numbers = regexp.MustCompile(`[0-9]+`)

// built records a build with its failure, or "".
func (h *buildFailureGuard) built(failure string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled = h.settled || failure == ""; h.settled {
		return
	}
	kind := numbers.ReplaceAllString(failure, "")
	if kind != h.last {
		h.last, h.failures = kind, 0
	}
	if h.failures++; h.failures < maxInitialFailures {
		return
	}
	h.settled = true
	h.end(fmt.Errorf("this machine builds nothing: the first %d builds fail alike: %s", maxInitialFailures, failure))
}

// packageMaker compiles the models of jobs into packages.
type packageMaker struct {
	*modelReader
	records tilthv1.RecordServiceClient
	lock    func(context.Context) (release func(), err error)
	BuilderConfig
}

// packageMaker returns the configuration for making packages, or nil if disabled.
func (b *base) packageMaker(ctx context.Context, cfg BuilderConfig, box *sandbox.Sandbox, lock func(context.Context) (func(), error)) (*builder.Packages, error) {
	if len(cfg.Read) == 0 {
		return nil, nil
	}
	reader, err := b.reader(ctx, cfg.Read, box)
	if reader == nil {
		return nil, err
	}
	b.spec.Capabilities = append(b.spec.Capabilities, wire.RunsPackages)
	m := &packageMaker{reader, tilthv1.NewRecordServiceClient(b.conn), lock, cfg}
	return &builder.Packages{Make: m.make, Report: reporter(cfg.Logger, "ReportRun", tilthv1.NewRunServiceClient(b.conn).ReportRun)}, nil
}

// make implements builder.Packages.Make. It reads the model in this process only after a sandboxed process has read it
// within its limits of memory and time.
func (m *packageMaker) make(ctx context.Context, job *tilthv1.Job, t *target.Target, tc *toolchain.Toolchain, output string) (failure string, err error) {
	spec := job.GetSpec()
	path, release, err := m.artifacts.Download(ctx, spec.GetModel().GetFile())
	if err != nil {
		return "", &agent.FarmError{Cause: fmt.Errorf("fetching the model: %w", err)}
	}
	defer release()
	files := jobclient.ModelFiles{spec.GetModel().GetFile().GetDigest(): path}
	if release, err = m.lock(ctx); err != nil {
		return "", fmt.Errorf("waiting for the machine: %w", err)
	}
	defer release()
	read, err := m.models.Read(ctx, files, &tilthv1.ModelWork{
		Job: job, Toolchains: []string{spec.GetTarget().GetToolchain()},
		DeviceClass: &tilthv1.DeviceClass{Name: spec.GetTarget().GetDeviceClass(), Descriptor_: spec.GetTarget().GetDescriptor_()},
	})
	if err != nil || read.GetFailure() != "" {
		return read.GetFailure(), err
	}
	p, of, err := jobclient.Program(files, spec, t)
	if err != nil {
		return err.Error(), nil
	}
	own := func(k *userkernel.Kernel) bool { // those of other owners would run in the user's process
		return m.OwnKernels && slices.ContainsFunc(of.Kernels, func(one *userkernel.Kernel) bool { return one.Digest() == k.Digest() })
	}
	choices, err := bestschedule.Choose(ctx, p, t, of.Numerics, bestschedule.Sources{Lookup: m.lookup(job.GetId()), Own: own}, m.Logger)
	if err != nil {
		return "", err
	}
	options := aot.Options{
		Target: t, Toolchain: tc, Choices: choices, Parallel: m.Parallel, Output: output, Own: own, Apart: true,
		Provenance: &aot.Provenance{
			ModelSHA256: spec.GetModel().GetFile().GetDigest(), Tilth: m.Version, Commit: m.Commit, Numerics: of.Numerics.String(),
			DeviceClass: t.DeviceClass(), Target: t.Fingerprint(),
		},
	}
	if !t.HasOperatingSystem() {
		options.Prefix = aot.PrefixOf(spec.GetName())
	}
	_, err = aot.Compile(ctx, p, options)
	return "", err
}

// recordsPerCall bounds the records of one response.
const recordsPerCall = 100

// lookup returns a lookup of the records that a job may use.
func (m *packageMaker) lookup(jobID string) bestschedule.Lookup {
	return func(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) (found []*tilthv1.Record, err error) {
		for some := range slices.Chunk(workloads, recordsPerCall) {
			request := &tilthv1.BestRecordsRequest{Target: target, WorkloadDigests: some, Numerics: numerics.String(), JobId: jobID}
			err := agent.Report(ctx, m.Logger, "look up the best records", func(ctx context.Context) error {
				best, err := m.records.BestRecords(ctx, request)
				found = append(found, best.GetRecords()...)
				return err
			})
			if err != nil {
				return nil, &agent.FarmError{Cause: err}
			}
		}
		return found, nil
	}
}
