package main

import "github.com/spf13/cobra"

func newBench(a *app) *cobra.Command {
	k := &compareCommand{app: a}
	c := &cobra.Command{
		Use: "bench PACKAGE.tar...", Short: "Time packages in turns, here or on a farm", Long: compareLong,
		Example: "  tilth bench untuned.tar tuned.tar --tracker 127.0.0.1:9190 --device rack3/board7",
		Args:    cobra.MinimumNArgs(1),
	}
	k.add(c)
	return a.leaf(c, k.run)
}
