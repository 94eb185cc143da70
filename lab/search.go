package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/lab/bench/replay"
)

const searchLong = `Run searches on recorded sets, without a device: how many trials each takes to get
close to the best schedule of the set, and how close it is after a number of trials.

A variant of an algorithm lacks a part (gbdt-no-model) or knows more: gbdt knows all
other workloads of the sets on the same target, gbdt-known also an earlier search of
the same workload. The same sets, seeds and budget give the same tables.`

// searchFlags configures a comparison.
type searchFlags struct {
	searches      []string
	known         []string
	budget, seeds int
	firstSeed     uint64
	batches       replay.Batches
	noise, tasks  bool
	asJSON        bool
}

func newSearch() *cobra.Command {
	var f searchFlags
	c := &cobra.Command{
		Use: "search SET|FOLDER...", Short: "Compare searches on recorded sets", Long: searchLong,
		Example: "  lab search sets\n  lab search sets --tuner gbdt,ga --seeds 20 --json > searches.json",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().StringSliceVar(&f.searches, "tuner", nil, "searches to compare: "+replay.VariantNames()+" (default all)")
	c.Flags().StringSliceVar(&f.known, "known", nil, "further `sets`, samples or folders of them that gbdt learns from")
	c.Flags().IntVar(&f.budget, "budget", 256, "trials of each search")
	c.Flags().IntVar(&f.seeds, "seeds", 10, "runs of each search, each with its own seed")
	c.Flags().Uint64Var(&f.firstSeed, "first-seed", 1, "the first seed; the others follow it")
	c.Flags().IntVar(&f.batches.Most, "batch", wire.BatchCandidates, "candidates proposed at most before their results arrive")
	c.Flags().IntVar(&f.batches.Fewest, "first-batch", 4, "size of the first batch; later ones have as many as were tried, up to --batch")
	c.Flags().BoolVar(&f.noise, "noise", false, "replay single, noisy samples, and judge by latencies")
	c.Flags().BoolVar(&f.tasks, "tasks", false, "also show each task")
	jsonFlag(c, &f.asJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.budget < 1 || f.seeds < 1 || f.batches.Fewest < 1 || f.batches.Most < f.batches.Fewest {
			return fmt.Errorf("--budget %d, --seeds %d, --batch %d, --first-batch %d: want positive numbers, the last no larger than the one before",
				f.budget, f.seeds, f.batches.Most, f.batches.Fewest)
		}
		variants, err := replay.Choose(f.searches)
		if err != nil {
			return fmt.Errorf("--tuner: %w", err)
		}
		sets, err := replay.ReadAll(args)
		if err != nil {
			return err
		}
		before, err := replay.ReadAll(f.known)
		if err != nil {
			return err
		}
		report, err := replay.CompareSearches(c.Context(), sets, replay.SearchOptions{
			Variants: variants, Before: before, Budget: f.budget, Seeds: f.seeds, FirstSeed: f.firstSeed, Batches: f.batches, Noisy: f.noise, Progress: tenths(c.ErrOrStderr()),
		})
		if err != nil {
			return err
		}
		if f.asJSON {
			return writeJSON(c.OutOrStdout(), report)
		}
		return report.Write(c.OutOrStdout(), f.tasks)
	}
	return c
}

// tenths returns a progress function that writes each completed tenth.
func tenths(w io.Writer) func(done, all int) {
	said := 0
	return func(done, all int) {
		if t := 10 * done / all; t > said {
			said = t
			fmt.Fprintf(w, "%d of %d runs\n", done, all)
		}
	}
}
