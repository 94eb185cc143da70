package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/conformance"
	"github.com/tilth-dev/tilth/compiler/target"
)

const checkLong = `Run ONNX backend test cases: each model is compiled with default schedules, loaded
and run, and its outputs are compared with the expected ones.

A case is a folder with model.onnx and test_data_set_N/{input,output}_K.pb; a DIR is
a case or contains cases at any depth. Each case prints one line: pass, fail with the
worst error, or unsupported with the operator and the reason.

float32 and float64 may differ by 1e-7 + 1e-3 |expected|, as in ONNX's own
runner; float16 by 1e-4 + 4e-3 |expected|, bfloat16 by 1e-3 + 2e-2 |expected|;
integers and bools must be equal. NaN equals NaN. With --numerics fast, which rounds
factors of products, floating point outputs may differ further, by a bound that follows
from what was rounded to which type and how often, relative to the largest element.
Inputs that determine shapes (axes, repeats) become constants of the model when it cannot
be compiled otherwise.

Cases are compiled several at a time and run in processes of their own: a case that
crashes or hangs fails with the signal, and affects no other.

The exit status is 1 when a case fails; an unsupported case is no failure.`

type checkCommand struct {
	*app
	target, compiler string
	emulator         emulatorFlag
	threads, jobs    int
	limit            time.Duration
	numerics         numericsFlag
	storage          storageFlag
}

func newCheck(a *app) *cobra.Command {
	k := &checkCommand{app: a}
	c := &cobra.Command{
		Use: "check DIR...", Short: "Run ONNX backend test cases", Long: checkLong,
		Example: `  tilth check /usr/share/libonnx-testdata/data/node
  tilth check mymodel/ --threads 1 --json
  tilth check cases/ --target riscv64 --emulator "qemu-riscv64 -cpu rv64,v=true"`,
		Args: cobra.MinimumNArgs(1),
	}
	k.targetFlags(c)
	c.Flags().IntVar(&k.jobs, "jobs", 0, "processes at a time (default one per processor)")
	c.Flags().DurationVar(&k.limit, "limit", 2*time.Minute, "`time` that a case may take")
	atLeast(c, 0, "threads", "jobs")
	atLeast(c, 1, "limit")
	c.Flags().BoolVar(&k.asJSON, "json", false, "print a line of JSON for each case, and the summary on stderr")
	return a.leaf(c, k.run)
}

func (k *checkCommand) targetFlags(c *cobra.Command) {
	targetFlag(c, &k.target, "what to compile for, which this machine or the emulator must be able to run")
	k.emulator.add(c, "`command` that runs programs of the target")
	c.Flags().IntVar(&k.threads, "threads", 0, "threads a package runs on (default the physical cores)")
	compilerFlag(c, &k.compiler)
	k.numerics.add(c)
	k.storage.add(c)
}

func (k *checkCommand) run(ctx context.Context, dirs []string) error {
	if err := cmp.Or(k.emulator.check(), k.emulator.find(), k.storage.check(k.numerics.level)); err != nil {
		return err
	}
	if err := k.possible(ctx); err != nil {
		return err
	}
	cases, err := conformance.Find(dirs...)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program to start it again: %w", err)
	}
	jobs := cmp.Or(k.jobs, runtime.NumCPU())
	pool := conformance.Pool{Jobs: jobs, Limit: k.limit, Start: func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, program, checkServerName, "--target", k.target, "--threads", strconv.Itoa(k.threads), "--compiler", k.compiler, "--numerics", k.numerics.String(), "--storage", k.storage.text, "--emulator", k.emulator.text)
	}}
	var summary conformance.Summary
	err = pool.Run(ctx, cases, func(r conformance.Result) {
		summary.Add(r)
		k.print(r)
	})
	if err != nil {
		return err
	}
	return k.finish(summary)
}

// possible returns why no case can run: there is no compiler, or this machine does not have the target.
func (k *checkCommand) possible(ctx context.Context) error {
	wanted, _, err := localTarget(ctx, k.target, k.threads, k.compiler)
	if err != nil || len(k.emulator.command) > 0 {
		return err
	}
	machine, err := target.Native(0)
	if err != nil {
		return err
	}
	if err := wanted.RunsOn(machine); err != nil {
		return fmt.Errorf("%w: use --target native, or name an --emulator", err)
	}
	return nil
}

func (k *checkCommand) print(r conformance.Result) {
	if !k.asJSON {
		fmt.Fprintln(k.stdout, r)
		return
	}
	e := json.NewEncoder(k.stdout)
	e.SetEscapeHTML(false)
	_ = e.Encode(r) // like text output, a closed pipe ends the program
}

func (k *checkCommand) finish(s conformance.Summary) error {
	out := k.stdout
	if k.asJSON {
		out = k.stderr
	}
	fmt.Fprintln(out, s)
	if s.Fail > 0 {
		return fmt.Errorf("%d of %d cases failed", s.Fail, s.Total())
	}
	return nil
}

// checkServerName is the hidden command of the child processes of tilth check.
const checkServerName = "check-cases"

// newCheckServer returns the command that runs the cases read from standard input.
func newCheckServer(a *app) *cobra.Command {
	k := &checkCommand{app: a}
	c := &cobra.Command{Use: checkServerName, Short: "Serve tilth check", Hidden: true}
	k.targetFlags(c)
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		a.serves = true
		if err := cmp.Or(k.emulator.check(), k.emulator.find()); err != nil {
			return err
		}
		machine, tc, err := localTarget(ctx, k.target, k.threads, k.compiler)
		if err != nil {
			return err
		}
		storage, err := k.storage.on(machine, k.numerics.level)
		if err != nil {
			return err
		}
		return conformance.Serve(ctx, &conformance.Runner{Target: machine, Toolchain: tc, Numerics: k.numerics.level, Storage: storage, Emulator: k.emulator.command}, k.stdin, k.stdout)
	})
}
