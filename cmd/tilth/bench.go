package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
)

const benchLong = compareLong + `

The commands below compare searches and cost models on recorded measurements.`

func newBench(a *app) *cobra.Command {
	k := &compareCommand{app: a}
	c := branch("bench", "Time packages in turns, here or on a farm; compare searches and cost models",
		newBenchRecord(a), newBenchSearch(a), newBenchModel(a))
	c.Use, c.Long = "bench [PACKAGE.tar...]", benchLong
	c.Example = "  tilth bench untuned.tar tuned.tar --tracker 127.0.0.1:9190 --device rack3/board7"
	k.add(c)
	help := c.RunE
	a.leaf(c, func(ctx context.Context, packages []string) error {
		if len(packages) == 0 {
			return help(c, nil)
		}
		if _, err := os.Stat(packages[0]); err != nil {
			return usagef("%s is neither a package nor a command of bench: see 'tilth bench --help'", packages[0])
		}
		return k.run(ctx, packages)
	})
	return c
}
