package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/runner"
)

const runnerLong = `Run a runner: it verifies and times candidates on this machine.

Each number of threads is a separate device class; by default a runner offers every
number up to the number of physical cores. Candidates and packages run in a sandbox.`

const runnerDetails = `Latencies on one thread do not predict those on two. On machines with several classes of
cores, such as big.LITTLE, each class is offered, and its kernels run only on its cores;
--target native:1 is the second class.

A runner for an NVIDIA card (--target cuda) uses the first card that CUDA_VISIBLE_DEVICES
shows, or the one that --target names by its number among those, by its UUID, such as
cuda:GPU-8f6c1a52-9b6e-4d0e-a2a5-1c9f0e7d3b41, or by the UUID of a MIG slice. Start one runner per card. Cards are timed concurrently.

In the sandbox, code runs as a different user or in a user namespace, without network,
privileges, other processes or other files, and with limited resources. Unavailable
layers are logged and shown by 'tilth devices show'. With --sandbox required, the runner
does not start without them.

With --emulator, candidates run under the given emulator, and the device gets the label
emulator. The latencies are those of the emulator, not of a board. A static runner may
itself run under an emulator.

With --board, candidates run on a bare-metal board, whose monitor the runner reaches over
a serial line, or on an emulated one: see docs/boards.md.

With --update-key, the runner updates itself to newer releases that its tracker offers
(tilth tracker --releases) and the key has signed. It drains and runs the new program on
trial. If that does not join the farm, the runner continues with the old one.

If there is a C compiler, the runner measures the machine's limits at start, so that
latencies can be compared with them.`

func newRunner(a *app) *cobra.Command {
	var flags agentFlags
	var threads []int
	var name string
	var emulator emulatorFlag
	var labels map[string]string
	var calibrate bool
	var meter string
	var box sandboxFlag
	var board boardFlag
	var updates updateFlags
	c := &cobra.Command{
		Use: "runner", Short: "Run a runner: it measures candidates on this machine",
		Long: runnerLong,
		Example: `  tilth runner --tracker 127.0.0.1:9190 --name rack3/board7
  tilth runner --threads 1,4 --label rack=3
  tilth runner --target cuda:1
  tilth runner --board mps2-an500
  tilth runner --target arm64 --emulator "qemu-aarch64 -L /usr/aarch64-linux-gnu"`,
		Annotations: map[string]string{helpDetails: runnerDetails},
	}
	flags.add(c)
	c.Flags().IntSliceVar(&threads, "threads", nil, "`numbers` of threads to offer (default all, up to the physical cores)")
	targetFlag(c, &name, "what this device is")
	emulator.add(c, "`command` that runs programs of the target; the device gets the label emulator")
	c.Flags().StringToStringVar(&labels, "label", nil, "labels by which devices can be chosen, e.g. `rack=3`")
	c.Flags().BoolVar(&calibrate, "calibrate", true, "let the tracker watch this device: it asks for a calibration of some 0.1 s every few minutes")
	c.Flags().StringVar(&meter, "meter", "", "energy meter of this machine, by `name`: its kernels are then tuned for energy, too (default its only one)")
	board.add(c, "measure on a board without an operating system")
	c.MarkFlagsMutuallyExclusive("board", "emulator")
	c.MarkFlagsMutuallyExclusive("board", "threads")
	box.add(c)
	updates.add(c)
	check := func() error { return cmp.Or(flags.site.check(), emulator.check(), updates.check()) }
	return a.service(c, check, func(ctx context.Context) (err error) {
		if name, err = board.target(name); err != nil {
			return err
		}
		if err := emulator.find(); err != nil {
			return err
		}
		config, err := flags.config(a)
		if err != nil {
			return err
		}
		targets, err := offered(name, threads)
		if err != nil {
			return err
		}
		emulated := len(emulator.command) > 0
		there, err := board.open(ctx, os.Getenv(toolchain.Variable), config.Logger)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, there.close()) }()
		elsewhere := emulated || there.Board != nil
		if !elsewhere {
			if err := runsHere(targets[len(targets)-1]); err != nil {
				return fmt.Errorf("%w: start the runner on such a machine, or name an --emulator", err)
			}
		}
		for _, t := range targets {
			config.Logger.Info("runner offers", "tracker", config.Tracker, "class", t.DeviceClass())
		}
		if config.Lock, err = hostlock.Announced(config.Logger); err != nil {
			return err
		}
		gauge, err := openMeter(meter, targets[0], elsewhere, config.Logger)
		if err != nil {
			return err
		}
		var execute []string
		if !elsewhere && aot.Loads {
			execute = []string{"tilth", runServerName}
		}
		return updates.run(ctx, farm.RunnerConfig{
			AgentConfig: config, Targets: targets, Emulator: emulator.command, Labels: labels, Meter: gauge, Calibrate: calibrate, Execute: execute,
			Rates: rates(ctx, config, targets, elsewhere), Board: there.Board, Sandbox: box.mode,
		})
	})
}

// openMeter opens the meter for a target's energy, or returns nil if none is named or found.
func openMeter(name string, t *target.Target, emulated bool, log *slog.Logger) (*runner.EnergyMeter, error) {
	if emulated || !t.MeasuresEnergy() {
		if name != "" {
			return nil, usagef("--meter %s: it does not measure the energy of a GPU, a board or an emulated device", name)
		}
		return nil, nil
	}
	meter, err := runner.MachineMeter(name)
	switch {
	case err == nil:
		log.Info("this device is offered for energy, too", "meter", meter.Name())
	case name != "":
		return nil, err
	case !errors.Is(err, runner.ErrNoMeter):
		log.Warn("this device is not offered for energy", "error", err)
	}
	return meter, nil
}

// rates returns the peak rates of this machine for each target. It returns nil without a compiler or under an
// emulator; latencies are then shown without limits.
func rates(ctx context.Context, config farm.AgentConfig, targets []*target.Target, emulated bool) []roofline.Rates {
	if emulated {
		return nil
	}
	tc, err := toolchain.Find(ctx, "")
	if err != nil {
		config.Logger.Info("the machine's limits are unknown: no compiler here", "error", err)
		return nil
	}
	measured, err := farm.MeasureRates(ctx, tc, targets, config.Lock, config.CacheDir)
	if err != nil {
		config.Logger.Warn("the machine's limits are unknown", "error", err)
		return nil
	}
	return measured
}

// offered returns the targets by number of threads, and on this machine for each core class.
func offered(name string, threads []int) ([]*target.Target, error) {
	for _, n := range threads {
		if n < 1 {
			return nil, usagef("--threads %d: want at least 1", n)
		}
	}
	all, err := registry.Target(name, 0)
	if err != nil {
		return nil, err
	}
	by, err := registry.Of(all)
	if err != nil {
		return nil, err
	}
	if len(threads) == 0 && by.Device(all) != nil {
		return []*target.Target{all}, nil // kernels of a device use no host threads
	}
	if name != target.Here {
		return byThreads(name, all, threads)
	}
	classes, err := target.Classes()
	if err != nil {
		return nil, err
	}
	list, err := byThreads(name, all, threads)
	for k := 1; k < len(classes) && err == nil; k++ {
		few := slices.DeleteFunc(slices.Clone(threads), func(n int) bool { return n > len(classes[k].CPUs) })
		if len(few) == 0 && len(threads) > 0 {
			continue
		}
		var slower []*target.Target
		slower, err = byThreads(fmt.Sprintf("%s:%d", target.Here, k), classes[k].Target, few)
		list = append(list, slower...)
	}
	return list, err
}

// byThreads returns a target with each of the given numbers of threads, or with every number up to its own.
func byThreads(name string, all *target.Target, threads []int) (list []*target.Target, err error) {
	if len(threads) == 0 {
		for n := range all.Threads() {
			threads = append(threads, n+1)
		}
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(threads))) {
		t, err := registry.Target(name, n)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// runsHere returns why kernels of a target cannot run on this machine, or nil.
func runsHere(t *target.Target) error {
	by, err := registry.Of(t)
	if err != nil {
		return err
	}
	return by.Present(t)
}
