package farm

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tilth-dev/tilth/agent"
	"github.com/tilth-dev/tilth/artifact"
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
		return fmt.Errorf("runner: %w", err)
	}
	handlers := byClass{}
	for _, t := range cfg.Targets {
		class := &tilthv1.DeviceClass{Name: t.DeviceClass(), Descriptor_: t.Encode()}
		base.spec.DeviceClasses = append(base.spec.DeviceClasses, class)
		handlers[class.GetName()] = base.runnerOf(cfg, class.GetName(), artifact.NewClient(base.conn, cache, cfg.Logger))
	}
	return base.run(ctx, handlers, runnerSlots)
}

// runnerCacheBytes bounds the artifacts that a runner keeps: candidates are measured once, harness and references often.
const runnerCacheBytes = 1 << 30

func (b *base) runnerOf(cfg RunnerConfig, class string, artifacts *artifact.Client) agent.Handler {
	return runner.NewHandler(runner.Config{
		Device:      b.cfg.Name,
		DeviceClass: class,
		Emulator:    cfg.Emulator,
		Artifacts:   artifacts,
		Report: func(ctx context.Context, report *tilthv1.ReportMeasurementsRequest) error {
			return agent.Report(ctx, cfg.Logger, "ReportMeasurements", func(ctx context.Context) error {
				_, err := tilthv1.NewMeasureServiceClient(b.conn).ReportMeasurements(ctx, report)
				return err
			})
		},
		Lock:    b.lock.Time,
		Scratch: b.scratch,
		Logger:  cfg.Logger,
	})
}

// byClass passes a batch to the handler of its device class.
type byClass map[string]agent.Handler

// Handle implements agent.Handler.
func (h byClass) Handle(ctx context.Context, work *tilthv1.LeaseWorkResponse) error {
	class := work.GetMeasure().GetTarget().GetDeviceClass()
	handler, ok := h[class]
	if !ok {
		return fmt.Errorf("device class %q is not measured here", class)
	}
	return handler.Handle(ctx, work)
}
