package farm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/agent/telemetry"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/sandbox"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// builderSlots is one since a batch already runs as many compilers as are wanted: two batches at a time were no
// faster, and each then seemed to cost twice.
const builderSlots = 1

// BuilderConfig is what a builder needs beyond what every agent does.
type BuilderConfig struct {
	AgentConfig
	Toolchain *toolchain.Toolchain
	// Parallel is how many compilers a batch may run at once; 0 = 1.
	Parallel int
	// Sandbox says what to do about walls around compilers that this machine lacks; empty = sandbox.BestEffort.
	Sandbox sandbox.Mode
	// OwnKernels has kernels built that jobs' owners wrote, which may include any file that the compiler can read.
	OwnKernels bool
	// Built, if not nil, hears of each batch why it could not be built; empty = it was.
	Built func(failure string)
}

// RunBuilder is the life of a builder, until ctx ends.
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
	kept, err := builder.OpenKept(filepath.Join(base.scratch, "kept"))
	if err != nil {
		return base.end(err)
	}
	metrics, err := telemetry.NewBuilder(base.registry)
	if err != nil {
		return base.end(fmt.Errorf("builder: %w", err))
	}
	box, err := openSandbox(cfg.Sandbox, base)
	if err != nil {
		return base.end(fmt.Errorf("builder: %w", err))
	}
	handler := builder.NewHandler(builder.Config{
		Compiler:  &builder.Compiler{Toolchain: cfg.Toolchain.In(box), Cache: cache, Kept: kept, Parallel: cfg.Parallel, OwnKernels: cfg.OwnKernels},
		Artifacts: artifact.NewClient(base.conn, nil, cfg.Logger),
		Report: metrics.Report(func(ctx context.Context, report *tilthv1.ReportBuildRequest) error {
			if cfg.Built != nil {
				cfg.Built(report.GetInfraMessage())
			}
			return agent.Report(ctx, cfg.Logger, "ReportBuild", func(ctx context.Context) error {
				_, err := tilthv1.NewBuildServiceClient(base.conn).ReportBuild(ctx, report)
				return err
			})
		}),
		Lock:    base.meter.Lock(base.cfg.Lock.Compute),
		Scratch: base.scratch,
		Logger:  cfg.Logger,
	})
	err = base.run(ctx, handler, builderSlots)
	return errors.Join(err, box.Close())
}
