package main

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/config"
	"github.com/tilth-dev/tilth/internal/farm"
)

// service sets the work of a service, whose flags also come from a file and the environment. check, if not
// nil, validates them together.
func (a *app) service(c *cobra.Command, check func() error, work func(ctx context.Context) error) *cobra.Command {
	var file string
	var checkOnly bool
	c.Flags().StringVar(&file, config.FileFlag, "", "YAML `file` of settings: keys are the names of flags; TILTH_... variables override it, and flags override both")
	c.Flags().BoolVar(&checkOnly, config.CheckFlag, false, "print all settings and where each comes from, and exit")
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		a.serves = true
		settings, err := config.Apply(c.Flags(), os.LookupEnv)
		if err != nil {
			return usagef("%w", err)
		}
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		if checkOnly {
			return config.Write(a.stdout, settings)
		}
		return work(ctx)
	})
}

// callerVariables lists the flags of commands that call a tracker and that also come from the environment.
var callerVariables = []string{"tls-ca", "tls-cert", "tls-key", "token-file"}

// fromEnvironment sets the flags that connect a command to its tracker. TILTH_TRACKER replaces --tracker,
// unless a flag requests local work.
func fromEnvironment(c *cobra.Command) error {
	if key := c.Flags().Lookup(verifyKeyFlag); key != nil {
		if key.Changed && key.Value.String() == "" {
			return usagef("--%s is empty: name the file of a key, or leave the flag out", verifyKeyFlag)
		}
		if err := config.Environment(c.Flags(), os.LookupEnv, verifyKeyFlag); err != nil {
			return usagef("%w", err)
		}
	}
	tracker := c.Flags().Lookup("tracker")
	calls := tracker != nil || c.Flags().Lookup(callerVariables[0]) != nil
	if !calls || c.Flags().Lookup(config.FileFlag) != nil { // services set all their flags from it
		return nil
	}
	names := callerVariables
	if tracker != nil && !slices.ContainsFunc(tracker.Annotations[localFlags], c.Flags().Changed) {
		names = append([]string{tracker.Name}, names...)
	}
	if err := config.Environment(c.Flags(), os.LookupEnv, names...); err != nil {
		return usagef("%w", err)
	}
	return nil
}

func newBuilder(a *app) *cobra.Command {
	var flags agentFlags
	var parallel int
	var compiler string
	var ownKernels bool
	var box sandboxFlag
	c := &cobra.Command{
		Use: "builder", Short: "Run a builder: it compiles candidates",
		Example: `  tilth builder --tracker 127.0.0.1:9190
  tilth builder --compiler gcc --threads 4`,
	}
	flags.add(c)
	c.Flags().IntVar(&parallel, "threads", runtime.NumCPU(), "compilers run at a time for one batch")
	box.add(c)
	c.Flags().BoolVar(&ownKernels, "own-kernels", false,
		"compile kernels that jobs' owners wrote; their C may include any file that this builder's user can read, and those for cards may read files of the runner's user")
	compilerFlag(c, &compiler)
	atLeast(c, 1, "threads")
	return a.service(c, flags.site.check, func(ctx context.Context) error {
		config, err := flags.config(a)
		if err != nil {
			return err
		}
		tc, err := toolchain.Find(ctx, compiler)
		if err != nil {
			return err
		}
		config.Logger.Info("builder starts", "tracker", config.Tracker, "toolchain", strings.Join(tc.Names(), ", "))
		return farm.RunBuilder(ctx, farm.BuilderConfig{AgentConfig: config, Toolchain: tc, Parallel: parallel, Sandbox: box.mode, OwnKernels: ownKernels, Read: []string{"tilth", modelServerName}})
	})
}

// compilerFlag adds --compiler.
func compilerFlag(c *cobra.Command, compiler *string) {
	c.Flags().StringVar(compiler, "compiler", os.Getenv(toolchain.Variable),
		"C compiler to use, a `path` or name (default $"+toolchain.Variable+", else the newest clang, else gcc)")
}

const tunerLong = `Run a tuner: it leases jobs and proposes candidates.

A tuner also reads models for clients without a compiler, in a sandboxed process with
limits of memory and time. Unavailable sandbox layers are logged; with --sandbox
required, the tuner does not start without them.`

func newTuner(a *app) *cobra.Command {
	var flags agentFlags
	var model costModelFlag
	var box sandboxFlag
	c := &cobra.Command{
		Use: "tuner", Short: "Run a tuner: it leases jobs and proposes candidates", Long: tunerLong,
		Example: "  tilth tuner --tracker 127.0.0.1:9190\n  tilth tuner --cost-model model.txt",
	}
	flags.add(c)
	model.add(c)
	box.add(c)
	return a.service(c, flags.site.check, func(ctx context.Context) error {
		config, err := flags.config(a)
		if err != nil {
			return err
		}
		models, err := model.models(config.CacheDir)
		if err != nil {
			return err
		}
		config.Logger.Info("tuner starts", "tracker", config.Tracker, "cost_model", cmp.Or(model.file, "learnt from records"))
		return farm.RunTuner(ctx, farm.TunerConfig{AgentConfig: config, Models: models, Read: []string{"tilth", modelServerName}, Sandbox: box.mode})
	})
}
