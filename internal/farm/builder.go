package farm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
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
	metrics, err := NewBuilderMetrics(base.registry)
	if err != nil {
		return base.end(fmt.Errorf("builder: %w", err))
	}
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
