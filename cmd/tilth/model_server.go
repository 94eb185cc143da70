package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tuner/job"
)

// modelServerName is the hidden command of a tuner's child processes.
const modelServerName = "read-model"

// modelServer returns the name and arguments of such a process.
func modelServer() []string { return []string{"tilth", modelServerName} }

// newModelServer returns the command that reads the model ordered on standard input.
func newModelServer(a *app) *cobra.Command {
	c := &cobra.Command{Use: modelServerName, Short: "Serve tilth tuner", Hidden: true, Args: cobra.NoArgs}
	return a.leaf(c, func(context.Context, []string) error {
		a.serves = true
		return job.ServeModelReader(a.stdin, a.stdout)
	})
}
