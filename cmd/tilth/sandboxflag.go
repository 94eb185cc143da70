package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

// sandboxFlag selects how to proceed when an isolation mechanism is unavailable.
type sandboxFlag struct{ mode sandbox.Mode }

func (f *sandboxFlag) add(c *cobra.Command) {
	f.mode = sandbox.BestEffort
	c.Flags().Var(f, "sandbox", "isolation of untrusted code: required (fail if a layer is unavailable), best-effort or off")
}

// Set implements pflag.Value.
func (f *sandboxFlag) Set(text string) error {
	mode, err := sandbox.ParseMode(text)
	if err != nil {
		return fmt.Errorf("want %s, %s or %s", sandbox.Required, sandbox.BestEffort, sandbox.Off)
	}
	f.mode = mode
	return nil
}

// String implements pflag.Value.
func (f *sandboxFlag) String() string { return string(f.mode) }

// Type implements pflag.Value.
func (f *sandboxFlag) Type() string { return "mode" }
