package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/tuning/reading"
)

// modelServerName is the command that a tuner starts its processes with.
const modelServerName = "read-model"

// modelServer are the name and the arguments of such a process.
func modelServer() []string { return []string{"tilth", modelServerName} }

// newModelServer reads the model of the order on its standard input.
func newModelServer(a *app) *cobra.Command {
	c := &cobra.Command{Use: modelServerName, Short: "Serve tilth tuner", Hidden: true, Args: cobra.NoArgs}
	return a.leaf(c, func(context.Context, []string) error {
		a.serves = true
		return reading.Serve(a.stdin, a.stdout)
	})
}
