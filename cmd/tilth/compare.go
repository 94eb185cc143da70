package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/stat"
)

// compareRow is one package's latency.
type compareRow struct {
	Package       string  `json:"package"`
	MedianSeconds float64 `json:"median_s"`
	MinSeconds    float64 `json:"min_s"`
	// SpeedUp is the first package's median over this one's.
	SpeedUp float64 `json:"speed_up"`
}

func newCompare(a *app) *cobra.Command {
	var rounds, number int
	var asJSON bool
	c := &cobra.Command{
		Use: "compare PACKAGE.tar...", Short: "Time packages in turns, and compare them with the first",
		Long: "Time packages on made-up inputs in turns, so that a machine that gets slower or faster meanwhile does so for\n" +
			"all of them, and compare them with the first.",
		Example: "  tilth compare untuned.tar tuned.tar",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().IntVar(&rounds, "rounds", 20, "turns of each package")
	c.Flags().IntVar(&number, "number", 1, "executions in a turn")
	jsonFlag(c, &asJSON)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if rounds < 1 || number < 1 {
			return usagef("--rounds %d, --number %d: want at least 1", rounds, number)
		}
		rows, err := compare(ctx, args, rounds, number)
		if err != nil {
			return err
		}
		table := show.NewTable("PACKAGE", ">MEDIAN", ">MIN", ">SPEED-UP")
		return list(a.stdout, asJSON, rows, table, func(r compareRow) []string {
			return []string{r.Package, show.Seconds(r.MedianSeconds), show.Seconds(r.MinSeconds), fmt.Sprintf("%.2fx", r.SpeedUp)}
		})
	})
}

func compare(ctx context.Context, packages []string, rounds, number int) (rows []compareRow, err error) {
	models := make([]*aot.Model, len(packages))
	defer func() {
		for _, m := range models {
			if m != nil {
				err = errors.Join(err, m.Close())
			}
		}
	}()
	for i, path := range packages {
		if models[i], err = aot.Load(path); err != nil {
			return nil, err
		}
		if err := models[i].SetInputs(madeUpInputs(models[i].Manifest())); err != nil {
			return nil, err
		}
	}
	release, err := timing(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	samples := make([][]float64, len(models))
	for range rounds {
		for i, m := range models {
			turn, err := m.Time(ctx, 1, number)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], turn...)
		}
	}
	first := stat.Of(samples[0]).Median
	for i, path := range packages {
		s := stat.Of(samples[i])
		rows = append(rows, compareRow{Package: path, MedianSeconds: s.Median, MinSeconds: s.Min, SpeedUp: first / s.Median})
	}
	return rows, nil
}
