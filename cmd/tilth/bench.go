package main

import "github.com/spf13/cobra"

func newBench(a *app) *cobra.Command {
	return branch("bench", "Compare searches on recorded measurements", newBenchRecord(a), newBenchModel(a))
}
