package main

import (
	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/sandbox"
)

// sandboxFlag says what to do about walls around candidates that this machine lacks.
type sandboxFlag struct{ name string }

func (f *sandboxFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "sandbox", string(sandbox.BestEffort),
		"around candidates and compilers: required (refuse to run when a layer is missing), best-effort or off")
}

func (f *sandboxFlag) mode() (sandbox.Mode, error) {
	m, err := sandbox.ParseMode(f.name)
	if err != nil {
		return "", usagef("--sandbox %s: want %s, %s or %s", f.name, sandbox.Required, sandbox.BestEffort, sandbox.Off)
	}
	return m, nil
}
