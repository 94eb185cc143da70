package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/runner/execute"
)

// runServerName is the command that a runner starts its processes with.
const runServerName = "run-packages"

// runServer are the name and the arguments of such a process.
func runServer() []string { return []string{"tilth", runServerName} }

// newRunServer runs the packages of the request on its standard input.
func newRunServer(a *app) *cobra.Command {
	c := &cobra.Command{Use: runServerName, Short: "Serve tilth runner", Hidden: true, Args: cobra.NoArgs}
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		a.serves = true
		return execute.Serve(ctx, a.stdin, a.stdout)
	})
}
