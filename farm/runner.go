package farm

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tilth-dev/tilth/agent"
	"github.com/tilth-dev/tilth/artifact"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

// runnerSlots lets a runner fetch the next batch while it times one; the host's lock keeps the timing apart.
const runnerSlots = 2

// RunnerConfig is what a runner needs beyond what every agent does.
type RunnerConfig struct {
	AgentConfig
	// Targets are what can be measured here, by numbers of threads for instance; each is offered as a device class.
	Targets []*target.Target
	// Rates are what this machine does at most on each of the targets; nil when that is not known.
	Rates []roofline.Rates
	// Emulator, when set, is the command that runs programs of the targets.
	Emulator []string
	// Labels are free, for choosing a device.
	Labels map[string]string
}

// RunRunner is the life of a runner, until ctx ends.
func RunRunner(ctx context.Context, cfg RunnerConfig) error {
	base, err := begin(cfg.AgentConfig, tilthv1.AgentKind_AGENT_KIND_RUNNER, "runner")
	if err != nil {
		return err
	}
	base.spec.Labels = cfg.Labels
	cache, err := artifact.Open(artifact.Options{
		Dir: filepath.Join(base.scratch, "artifacts"), CapBytes: runnerCacheBytes, Logger: cfg.Logger,
	})
	if err != nil {
		return base.end(fmt.Errorf("runner: %w", err))
	}
	for i, t := range cfg.Targets {
		class := &tilthv1.DeviceClass{Name: t.DeviceClass(), Descriptor_: t.Encode()}
		if cfg.Rates != nil {
			class.Machine = cfg.Rates[i].Encode()
		}
		base.spec.DeviceClasses = append(base.spec.DeviceClasses, class)
	}
	handler := runner.NewHandler(runner.Config{
		Device:    base.cfg.Name,
		Classes:   base.spec.DeviceClasses,
		Emulator:  cfg.Emulator,
		Artifacts: artifact.NewClient(base.conn, cache, cfg.Logger),
		Report: func(ctx context.Context, report *tilthv1.ReportMeasurementsRequest) error {
			return agent.Report(ctx, cfg.Logger, "ReportMeasurements", func(ctx context.Context) error {
				_, err := tilthv1.NewMeasureServiceClient(base.conn).ReportMeasurements(ctx, report)
				return err
			})
		},
		Lock:    base.cfg.Lock.Time,
		Scratch: base.scratch,
		Logger:  cfg.Logger,
	})
	return base.run(ctx, handler, runnerSlots)
}

// runnerCacheBytes bounds the artifacts that a runner keeps: candidates are measured once, harness and references often.
const runnerCacheBytes = 1 << 30
