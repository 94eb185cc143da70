package main

import "github.com/spf13/cobra"

func newBench(a *app) *cobra.Command {
	return branch("bench", "Compare searches and cost models on recorded measurements",
		newBenchRecord(a), newBenchSearch(a), newBenchModel(a))
}
