package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/runner/packagerun"
)

// runServerName is the hidden command of a runner's child processes.
const runServerName = "run-packages"

// runServer returns the name and arguments of such a process.
func runServer() []string { return []string{"tilth", runServerName} }

// newRunServer returns the command that runs the packages requested on standard input.
func newRunServer(a *app) *cobra.Command {
	c := &cobra.Command{Use: runServerName, Short: "Serve tilth runner", Hidden: true, Args: cobra.NoArgs}
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		a.serves = true
		return packagerun.Serve(ctx, a.stdin, a.stdout)
	})
}
