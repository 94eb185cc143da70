package farm

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/wire"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
	"github.com/tilth-dev/tilth/runner/boards"
	"github.com/tilth-dev/tilth/runner/packagerun"
)

// runnerSlots is 2 so that a runner fetches the next batch while it times one. The host's lock serialises the timing.
const runnerSlots = 2

// RunnerConfig configures a runner.
type RunnerConfig struct {
	AgentConfig
	// Targets lists the targets to measure, for example by number of threads. Each becomes a device class.
	Targets []*target.Target
	// Rates holds the peak rates of this machine for each target; nil if unknown.
	Rates []roofline.Rates
	// Emulator, if set, is the command that runs programs of the targets.
	Emulator []string
	// Board, if set, is the bare-metal board of the targets.
	Board *boards.Board
	// Labels are arbitrary labels for selecting a device.
	Labels map[string]string
	// Execute, if set, enables running packages in child processes. It is the name and arguments with which
	// this program calls packagerun.Serve.
	Execute []string
	// Meter, if set, offers the device for energy, too, as separate device classes.
	Meter *runner.EnergyMeter
	// Calibrate lets the tracker monitor the device by calibrations.
	Calibrate bool
	// Sandbox selects how to proceed when an isolation mechanism is unavailable; empty means sandbox.BestEffort.
	Sandbox sandbox.Mode
}

// RunRunner runs a runner until ctx ends.
func RunRunner(ctx context.Context, cfg RunnerConfig) error {
	device, err := cfg.device()
	if err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	base, err := begin(cfg.AgentConfig, tilthv1.AgentKind_AGENT_KIND_RUNNER, nameOn(device))
	if err != nil {
		return err
	}
	base.spec.Labels = map[string]string{}
	maps.Copy(base.spec.Labels, cfg.Labels)
	if len(cfg.Emulator) > 0 {
		base.spec.Labels[EmulatorLabel] = filepath.Base(cfg.Emulator[0])
		cfg.Logger.Warn("this device is an emulator, whose latencies are not those of a board", "emulator", cfg.Emulator[0])
	}
	if device != nil && device.ID != "" {
		base.bindCard(device)
	}
	var line func(context.Context) (*os.File, error)
	if cfg.Board != nil {
		line = cfg.Board.Line
		base.bindBoard(cfg.Board)
	}
	cache, err := artifact.Open(artifact.Options{
		Dir: filepath.Join(base.scratch, "artifacts"), CapBytes: runnerCacheBytes, UploadBytes: runnerCacheBytes, Logger: cfg.Logger,
	})
	if err != nil {
		return base.end(fmt.Errorf("runner: %w", err))
	}
	base.spec.DeviceClasses = append(base.spec.DeviceClasses, cfg.deviceClasses()...)
	metrics := NewRunnerMetrics(base.registry)
	box, err := openSandbox(cfg.Sandbox, base)
	if err != nil {
		return base.end(fmt.Errorf("runner: %w", err))
	}
	ctx, stop := context.WithCancel(ctx)
	watch, ended := base.watch(ctx, cfg, device)
	defer ended()
	defer stop()
	artifacts := artifact.NewClient(base.conn, cache, cfg.Logger)
	handler := runner.NewHandler(runner.Config{
		Device:    base.cfg.Name,
		Reach:     device,
		Line:      line,
		Classes:   base.spec.DeviceClasses,
		Emulator:  cfg.Emulator,
		Artifacts: artifacts,
		Report:    metrics.Report(reporter(cfg.Logger, "ReportMeasurements", tilthv1.NewMeasureServiceClient(base.conn).ReportMeasurements)),
		Meter:     cfg.Meter,
		Lock:      base.meter.Lock(base.cfg.Lock.Time),
		Compute:   base.meter.Lock(base.cfg.Lock.Compute),
		Watch:     watch,
		Packages:  base.packages(ctx, cfg, device, artifacts, box),
		Scratch:   base.scratch,
		Sandbox:   box,
		Seed:      dataSeed(),
		Logger:    cfg.Logger,
	})
	err = base.run(ctx, handler, runnerSlots)
	handler.Close()
	return errors.Join(err, box.Close())
}

// deviceClasses returns the classes of the targets; with a meter, each also with energy as its objective.
func (cfg RunnerConfig) deviceClasses() []*tilthv1.DeviceClass {
	var classes []*tilthv1.DeviceClass
	for i, t := range cfg.Targets {
		class := &tilthv1.DeviceClass{Name: t.DeviceClass(), Descriptor_: t.Encode()}
		if cfg.Rates != nil {
			class.Machine = cfg.Rates[i].Encode()
		}
		classes = append(classes, class)
		if cfg.Meter != nil && t.Objective == "" {
			metered := t.WithObjective(target.Energy)
			classes = append(classes,
				&tilthv1.DeviceClass{Name: metered.DeviceClass(), Descriptor_: metered.Encode(), Machine: class.GetMachine()})
		}
	}
	return classes
}

// device returns the device of the targets, or nil for the processor. All targets have the same device.
func (cfg RunnerConfig) device() (*backend.Device, error) {
	by, err := registry.Of(cfg.Targets[0])
	if err != nil {
		return nil, err
	}
	return by.Device(cfg.Targets[0]), nil
}

// CardLabel is the label with the name of a card.
const CardLabel = "card"

// nameOn returns the default name of a runner, which includes the card, so that a machine's runners differ.
func nameOn(device *backend.Device) string {
	const word, enough = "runner", len("GPU-12345678")
	if device == nil || device.ID == "" {
		return word
	}
	return word + "-" + device.ID[:min(len(device.ID), enough)]
}

// EmulatorLabel is the label of devices under an emulator. Its value is the name of the emulator's program.
const EmulatorLabel = "emulator"

// bindCard binds the runner to a card of this machine, with a label and a separate lock.
func (b *base) bindCard(device *backend.Device) {
	if _, said := b.spec.Labels[CardLabel]; !said {
		b.spec.Labels[CardLabel] = device.ID
	}
	b.cfg.Lock = b.cfg.Lock.On(device.ID)
}

// BoardLabel is the label with the name of a bare-metal board.
const BoardLabel = "board"

// bindBoard binds the runner to a board, with a separate lock, because load on its machine does not affect
// the board's counters.
func (b *base) bindBoard(board *boards.Board) {
	name := board.Hello().Board
	if _, said := b.spec.Labels[BoardLabel]; !said {
		b.spec.Labels[BoardLabel] = name
	}
	b.cfg.Lock = b.cfg.Lock.On(name)
	if board.Emulated() {
		b.spec.Labels[EmulatorLabel] = "qemu"
		b.cfg.Logger.Warn("this board is emulated: it counts instructions, which say little of a board's time", "board", name)
	}
}

// dataSeed returns a random seed for verification data, so that candidates cannot know the results in advance.
func dataSeed() uint64 {
	var bytes [8]byte
	_, _ = rand.Read(bytes[:]) // never fails
	return binary.NativeEndian.Uint64(bytes[:])
}

// runnerCacheBytes bounds the artifacts cached by a runner. Candidates are measured once, harnesses and
// references often.
const runnerCacheBytes = 1 << 30

// packages returns the handler that runs packages, or nil if disabled. Packages contain host code, which a
// driver's process would run with almost no isolation.
func (b *base) packages(ctx context.Context, cfg RunnerConfig, device *backend.Device, artifacts *artifact.Client, box *sandbox.Sandbox) *runner.Packages {
	if len(cfg.Execute) == 0 {
		return nil
	}
	if device != nil && !device.Link {
		cfg.Logger.Info("this runner runs no packages: a driver opens too much for the sandbox around them")
		return nil
	}
	executor := &packagerun.Executor{Server: sandbox.Server{Args: cfg.Execute, Sandbox: box, Scratch: b.scratch}}
	if err := executor.Try(ctx); err != nil {
		cfg.Logger.Warn("this runner runs no packages: no process for them can be started", "error", err)
		return nil
	}
	b.spec.Capabilities = append(b.spec.Capabilities, wire.RunsPackages)
	return &runner.Packages{
		Executor: executor,
		Upload:   artifacts.Upload,
		Report:   reporter(cfg.Logger, "ReportRun", tilthv1.NewRunServiceClient(b.conn).ReportRun),
	}
}

// watch starts monitoring the device until ctx ends; ended waits for that. It returns nil if the device is
// not monitored.
func (b *base) watch(ctx context.Context, cfg RunnerConfig, device *backend.Device) (watch *runner.Watch, ended func()) {
	if !cfg.Calibrate || cfg.Board != nil { // nothing else runs on a board, and its counters do not drift
		return nil, func() {}
	}
	kernels, around := processors(cfg)
	if device != nil {
		var err error
		if kernels, around, err = b.monitored(ctx, cfg.Targets[0]); err != nil {
			cfg.Logger.Warn("this runner is not watched: its device cannot be calibrated", "error", err)
			return nil, func() {}
		}
	}
	watch = runner.NewWatch(runner.WatchConfig{
		Kernels:      kernels,
		Lock:         b.cfg.Lock.Time,
		Report:       reporter(cfg.Logger, "ReportCalibration", tilthv1.NewDeviceServiceClient(b.conn).ReportCalibration),
		Surroundings: around,
		Logger:       cfg.Logger,
	})
	b.spec.Capabilities = append(b.spec.Capabilities, wire.Calibrates)
	b.calibrate = watch.Ask
	var running sync.WaitGroup
	running.Go(func() { watch.Run(ctx) })
	return watch, running.Wait
}

// surround reads the surroundings of a device.
type surround = func(context.Context) *tilthv1.Surroundings

// processors returns the calibrations of the processors; with several classes of cores, those of the first.
func processors(cfg RunnerConfig) (runner.Kernels, surround) {
	targets := cfg.Targets
	classmates := slices.DeleteFunc(slices.Clone(targets), func(t *target.Target) bool { return t.Model() != targets[0].Model() })
	largest := slices.MaxFunc(classmates, func(a, b *target.Target) int { return cmp.Compare(a.Threads(), b.Threads()) })
	machine := runner.MachineSurroundings()
	if cfg.Meter != nil {
		machine.Power = func(ctx context.Context) (string, float64) {
			watts, err := cfg.Meter.Power(ctx)
			if err != nil {
				cfg.Logger.Warn("the energy meter cannot be read", "meter", cfg.Meter.Name(), "error", err)
			}
			return cfg.Meter.Name(), watts
		}
	}
	return runner.NewCalibrationKernels(largest.Threads(), largest.CacheBytes(), largest.Affinity()), machine.Read
}

// monitored returns the calibrations of a device other than the processor. Other devices of the machine are
// not part of its surroundings.
func (b *base) monitored(ctx context.Context, t *target.Target) (runner.Kernels, surround, error) {
	by, err := registry.Of(t)
	if err != nil {
		return nil, nil, err
	}
	watched, ok := by.(backend.Monitored)
	if !ok {
		return nil, nil, fmt.Errorf("backend %s cannot watch a device", by.Name())
	}
	tc, err := toolchain.Find(ctx, os.Getenv(toolchain.Variable))
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(b.scratch, "monitor-*")
	if err != nil {
		return nil, nil, err
	}
	monitor, err := watched.Monitor(ctx, tc, t, dir)
	if err != nil {
		return nil, nil, err
	}
	host := runner.MachineSurroundings()
	host.GPUs = nil
	m := runner.NewMonitored(monitor, host.Read, b.cfg.Logger)
	return m, m.Surroundings, nil
}
