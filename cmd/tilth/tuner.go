package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/farm"
)

func newTuner(a *app) *cobra.Command {
	var flags agentFlags
	var model costModelFlag
	c := &cobra.Command{
		Use: "tuner", Short: "Run a tuner: it leases jobs and proposes candidates",
		Example: "  tilth tuner --tracker 127.0.0.1:9190\n  tilth tuner --cost-model model.txt",
		Args:    cobra.NoArgs,
	}
	flags.add(c)
	model.add(c)
	return a.service(c, flags.check, func(ctx context.Context) error {
		config, err := flags.config(a)
		if err != nil {
			return err
		}
		models, err := model.models(config.CacheDir)
		if err != nil {
			return err
		}
		config.Logger.Info("tuner starts", "tracker", config.Tracker, "cost_model", cmp.Or(model.file, "learnt from records"))
		return farm.RunTuner(ctx, farm.TunerConfig{AgentConfig: config, Models: models})
	})
}
