package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/farm"
)

func newTuner(a *app) *cobra.Command {
	var flags agentFlags
	c := &cobra.Command{
		Use: "tuner", Short: "Run a tuner: it leases jobs and proposes candidates",
		Example: "  tilth tuner --tracker 127.0.0.1:9190",
		Args:    cobra.NoArgs,
	}
	flags.add(c)
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		config, err := flags.config(a)
		if err != nil {
			return err
		}
		return farm.RunTuner(ctx, config)
	})
}
