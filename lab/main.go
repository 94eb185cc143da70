package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/lab/bench/loadtest"
	"github.com/tilth-dev/tilth/lab/bench/models"
	"github.com/tilth-dev/tilth/lab/bench/operators"
	"github.com/tilth-dev/tilth/lab/gpu"
	"github.com/tilth-dev/tilth/lab/mutation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "lab", Short: "Measure and test Tilth", SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(
		newRecord(), newSearch(), newCostModel(), newSimulate(), newSimulateTracker(),
		program("scale", "Draw the cost of a result over devices and records", loadtest.Scale),
		program("models", "Compare compiled models with ONNX Runtime", models.Main),
		program("operators", "Compare single operators with the machine's limits", operators.Main),
		program("gpu", "Run everything that needs an NVIDIA GPU", gpu.Main),
		program("mutate", "Break one promise after the other; its test must fail", mutation.Main),
	)
	return root
}

// program returns a command that parses its own flags.
func program(name, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " [FLAGS]", Short: short, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			err := run(c.Context(), args)
			if errors.Is(err, flag.ErrHelp) { // help was requested
				return nil
			}
			return err
		},
	}
}

// jsonFlag adds --json.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON for scripts")
}

// writeJSON writes a value, indented.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
