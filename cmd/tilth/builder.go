package main

import (
	"context"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/farm"
)

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
