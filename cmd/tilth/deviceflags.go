package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/runner/boards"
)

// boardFlag names a bare-metal board.
type boardFlag struct{ name string }

func (f *boardFlag) add(c *cobra.Command, use string) {
	c.Flags().StringVar(&f.name, "board", "", use+": "+strings.Join(boards.Names(), ", ")+" (emulated), or a JSON `file`")
}

// target returns the name of the board's target, or named, the value of --target, if there is no board.
func (f *boardFlag) target(named string) (string, error) {
	if f.name == "" {
		return named, nil
	}
	d, err := boards.Find(f.name)
	if err != nil {
		return "", &usageError{err}
	}
	if named != "native" && named != d.Target {
		return "", usagef("--target %s: board %s is %s; leave --target out", named, f.name, d.Target)
	}
	return d.Target, nil
}

// attached is a connected board, if one is named, with its scratch folder.
type attached struct {
	*boards.Board
	scratch string
}

// open connects to the board and builds its monitor if necessary. Without a board it does nothing.
func (f *boardFlag) open(ctx context.Context, compiler string, log *slog.Logger) (*attached, error) {
	if f.name == "" {
		return &attached{}, nil
	}
	d, err := boards.Find(f.name)
	if err != nil {
		return nil, &usageError{err}
	}
	machine, err := registry.Target(d.Target, 0)
	if err != nil {
		return nil, err
	}
	tc, err := toolchain.Find(ctx, compiler)
	if err != nil {
		tc = nil // boards.Open reports whether a compiler is needed
	}
	scratch, err := os.MkdirTemp("", "tilth-board-*")
	if err != nil {
		return nil, err
	}
	board, err := boards.Open(ctx, boards.Config{Description: d, Machine: machine, Toolchain: tc, Scratch: scratch, Logger: log})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	h := board.Hello()
	log.Info("the board answers", "board", h.Board, "monitor", h.Digest, "memory_bytes", h.MemoryBytes, "clock_hz", h.Hertz)
	return &attached{board, scratch}, nil
}

func (a *attached) close() error {
	if a.Board == nil {
		return nil
	}
	return errors.Join(a.Close(), os.RemoveAll(a.scratch))
}

// emulatorFlag names a command that runs programs of another architecture.
type emulatorFlag struct {
	text string
	// command holds its words after check; empty without an emulator.
	command []string
}

func (f *emulatorFlag) add(c *cobra.Command, use string) {
	c.Flags().StringVar(&f.text, "emulator", "", use)
}

// check splits the command.
func (f *emulatorFlag) check() error {
	if f.text == "" {
		return nil
	}
	f.command = strings.Fields(f.text)
	if len(f.command) == 0 {
		return usagef("--emulator %q: want a command, such as \"qemu-riscv64 -cpu rv64,v=true\"", f.text)
	}
	return nil
}

// find locates the emulator's program. It must be called after check.
func (f *emulatorFlag) find() error {
	if len(f.command) == 0 {
		return nil
	}
	if _, err := exec.LookPath(f.command[0]); err != nil {
		return usagef("--emulator: %w: install it, or give its path", err)
	}
	return nil
}

// sandboxFlag selects how to proceed when an isolation mechanism is unavailable.
type sandboxFlag struct{ mode sandbox.Mode }

func (f *sandboxFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(&f.mode), "sandbox", string(sandbox.BestEffort), "isolation of untrusted code: required (fail if a layer is unavailable), best-effort or off")
}

// threadsFlags selects the threads that run a package.
type threadsFlags struct {
	count int
	cpus  string
	list  []int
}

func (f *threadsFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.count, "threads", 0, "threads that run the package, at most those that it was compiled for (default all of them)")
	atLeast(c, 0, "threads")
	c.Flags().StringVar(&f.cpus, "cpus", "", "processors that they may run on: `numbers` and ranges, e.g. 0,2-5 (default any)")
}

// check parses the flags. They do not apply to a farm's device, whose runner decides.
func (f *threadsFlags) check(onFarm bool) (err error) {
	if onFarm && (f.count > 0 || f.cpus != "") {
		return usagef("--threads and --cpus are for packages that run here, not on a farm")
	}
	if f.list, err = target.ParseCPUs(f.cpus); err != nil {
		return usagef("--cpus %s: %w", f.cpus, err)
	}
	return nil
}

// load opens a package on the threads and verifies its signature if there is a key.
func (f *threadsFlags) load(path string, key *signing.PublicKey) (*aot.Model, error) {
	loader, err := aot.HostLoader()
	if err != nil {
		return nil, fmt.Errorf("loading package %s: %w", path, err)
	}
	loader.Threads, loader.Key = aot.Threads{Count: f.count, CPUs: f.list}, key
	m, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	if most := m.Manifest().Target.Threads(); f.count > most {
		m.Close()
		return nil, usagef("--threads %d: %s is compiled for %d: ask for at most that many, or compile it with --threads %d", f.count, path, most, f.count)
	}
	return m, nil
}

const (
	// maxTurn bounds waits for other processes that use this machine or the records file.
	maxTurn = 10 * time.Minute
	// noWaitLimit bounds, with --no-wait, the waits of a command that has begun.
	noWaitLimit = 5 * time.Second
)

// machineFlags configures how a command that times on this machine waits for others.
type machineFlags struct{ noWait bool }

func (f *machineFlags) add(c *cobra.Command, resource string) {
	c.Flags().BoolVar(&f.noWait, "no-wait", false, "fail if another process uses "+resource+", instead of waiting for up to 10m")
}

// lock returns the lock of this machine, which logs whom it waits for and calls expired, if not nil, when a wait takes
// too long. With --no-wait, it returns an error if the machine is in use.
func (f *machineFlags) lock(log *slog.Logger, expired func(error)) (*hostlock.Lock, error) {
	lock, err := hostlock.Announced(log)
	if err != nil {
		return nil, err
	}
	if lock.Limit(maxTurn, expired); f.noWait {
		lock.Limit(noWaitLimit, expired)
		err = lock.Refused()
	}
	return lock, err
}

// time prevents other processes from using this machine until release is called.
func (f *machineFlags) time(ctx context.Context, log *slog.Logger) (release func(), err error) {
	lock, err := f.lock(log, nil)
	if err != nil {
		return nil, err
	}
	return lock.Time(ctx)
}

// targetValue is the name of a target. Aliases are replaced when the flag is set.
type targetValue struct{ name *string }

// targetFlag adds --target, with native as the default.
func targetFlag(c *cobra.Command, name *string, use string) {
	*name = target.Here
	c.Flags().Var(targetValue{name}, "target", use+": native, a name that 'tilth targets' lists, or a JSON `file`")
}

// Set implements pflag.Value.
func (v targetValue) Set(text string) (err error) {
	*v.name, err = registry.Resolve(text)
	return err
}

// String implements pflag.Value.
func (v targetValue) String() string {
	if v.name == nil {
		return ""
	}
	return *v.name
}

// Type implements pflag.Value.
func (v targetValue) Type() string { return "target" }

func newTargets(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "targets", Short: "List the machines to compile for",
		Long: `List the values of --target, with other names for them. Case and underscores do not
matter: X86_64 is x86-64. A JSON file ('tilth devices list --json') describes a machine
without a name.`,
		Example: "  tilth targets\n  tilth compile resnet18.onnx --target raspberry-pi-4",
	}
	a.tableFlags(c)
	return a.leaf(c, func(context.Context, []string) error {
		table := humanize.NewTable("TARGET", "DESCRIPTION", "ALIASES").Whole("ALIASES")
		return list(a, registry.Targets(), table, func(t target.Named) []string {
			return []string{t.Name, t.Description, strings.Join(t.Aliases, ", ")}
		})
	})
}
