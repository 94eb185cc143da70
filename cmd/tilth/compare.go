package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/internal/stat"
	"github.com/tilth-dev/tilth/runner/execute"
)

// compareRow is one package's latency.
type compareRow struct {
	Package       string  `json:"package"`
	MedianSeconds float64 `json:"median_s"`
	MinSeconds    float64 `json:"min_s"`
	// SpeedUp is the first package's median over this one's.
	SpeedUp float64 `json:"speed_up"`
}

// compareCommand times packages in turns.
type compareCommand struct {
	*app
	rounds, number int
	asJSON         bool
	farm           runFarmFlags
}

const compareLong = `Time packages on made-up inputs in turns, so that a machine that gets slower or
faster meanwhile does so for all of them, and compare them with the first.

With --tracker they run on one device of a farm.`

func newCompare(a *app) *cobra.Command {
	k := &compareCommand{app: a}
	c := &cobra.Command{
		Use: "compare PACKAGE.tar...", Short: "Time packages in turns, and compare them with the first", Long: compareLong,
		Example: "  tilth compare untuned.tar tuned.tar",
		Args:    cobra.MinimumNArgs(1),
	}
	k.add(c)
	return a.leaf(c, k.run)
}

func (k *compareCommand) add(c *cobra.Command) {
	c.Flags().IntVar(&k.rounds, "rounds", 20, "turns of each package")
	c.Flags().IntVar(&k.number, "number", 1, "executions in a turn")
	jsonFlag(c, &k.asJSON)
	k.farm.add(c)
}

func (k *compareCommand) run(ctx context.Context, args []string) error {
	if k.rounds < 1 || k.number < 1 {
		return usagef("--rounds %d, --number %d: want at least 1", k.rounds, k.number)
	}
	if err := k.farm.check(); err != nil {
		return err
	}
	measure := k.here
	if k.farm.addr != "" {
		measure = k.onFarm
	}
	samples, err := measure(ctx, args)
	if err != nil {
		return err
	}
	first := stat.Of(samples[0]).Median
	var rows []compareRow
	for i, path := range args {
		s := stat.Of(samples[i])
		rows = append(rows, compareRow{Package: path, MedianSeconds: s.Median, MinSeconds: s.Min, SpeedUp: first / s.Median})
	}
	table := show.NewTable("PACKAGE", ">MEDIAN", ">MIN", ">SPEED-UP")
	return list(k.stdout, k.asJSON, rows, table, func(r compareRow) []string {
		return []string{r.Package, show.Seconds(r.MedianSeconds), show.Seconds(r.MinSeconds), fmt.Sprintf("%.2fx", r.SpeedUp)}
	})
}

// here times packages on this machine: seconds of one execution, by package.
func (k *compareCommand) here(ctx context.Context, packages []string) (samples [][]float64, err error) {
	models := make([]*aot.Model, len(packages))
	defer func() {
		for _, m := range models {
			if m != nil {
				err = errors.Join(err, m.Close())
			}
		}
	}()
	for i, path := range packages {
		file, done, err := k.inputFile(path)
		if err != nil {
			return nil, err
		}
		defer done()
		if models[i], err = aot.Load(file); err != nil {
			return nil, err
		}
		if err := models[i].SetInputs(execute.MadeUpInputs(models[i].Manifest())); err != nil {
			return nil, err
		}
	}
	release, err := timing(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return execute.Turns(ctx, models, k.rounds, k.number)
}

// onFarm times them on one device of a farm.
func (k *compareCommand) onFarm(ctx context.Context, packages []string) ([][]float64, error) {
	job, err := k.farm.run(ctx, k.app, client.Run{Packages: packages, Repeat: k.rounds, Number: k.number})
	if err != nil {
		return nil, err
	}
	var samples [][]float64
	for _, p := range job.GetResult().GetPackages() {
		samples = append(samples, p.GetSamplesSeconds())
	}
	if len(samples) != len(packages) {
		return nil, fmt.Errorf("job %s has results of %d packages, not %d", job.GetId(), len(samples), len(packages))
	}
	return samples, nil
}
