package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/runner/packagerun"
)

// compareRow is the latency of one package.
type compareRow struct {
	Package       string  `json:"package"`
	MedianSeconds float64 `json:"median_s"`
	// LowSeconds and HighSeconds bound the median with a probability of Level.
	LowSeconds  float64 `json:"low_s"`
	HighSeconds float64 `json:"high_s"`
	Level       float64 `json:"level"`
	MinSeconds  float64 `json:"min_s"`
	stats.Paired
	// Verdict is faster, slower, noise or too few rounds; empty for the first package.
	Verdict string `json:"verdict,omitempty"`
}

// compareCommand times packages in turns.
type compareCommand struct {
	*app
	rounds, number int
	extents        extentsFlag
	farm           runFarmFlags
	machine        machineFlags
}

const compareLong = `Time packages in turns on random inputs, and compare each with the first. Because they
take turns, changes of the machine's speed affect all of them.

The speed-up is the median over the rounds of the first package's time divided by this
one's, with its 95 % confidence interval. Where the interval contains 1.00x, the
difference is noise; more --rounds narrow the interval.

With --tracker, all of them run on one device of a farm.`

func newCompare(a *app) *cobra.Command {
	k := &compareCommand{app: a}
	c := &cobra.Command{
		Use:     "compare PACKAGE.tar...",
		Aliases: []string{"bench"}, // its name in earlier versions
		Short:   "Time packages in turns, here or on a farm, and compare them with the first",
		Long:    compareLong,
		Example: "  tilth compare untuned.tar tuned.tar\n  tilth compare untuned.tar tuned.tar --tracker 127.0.0.1:9190 --device rack3/board7",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().IntVar(&k.rounds, "rounds", 20, "turns of each package")
	c.Flags().IntVar(&k.number, "number", 1, "executions in a turn")
	atLeast(c, 1, "rounds", "number")
	k.tableFlags(c)
	k.extents.add(c)
	k.farm.add(c)
	k.machine.add(c, "this machine")
	k.farm.excludes(c, "no-wait")
	return a.leaf(c, k.run)
}

func (k *compareCommand) run(ctx context.Context, args []string) error {
	if err := k.farm.check(); err != nil {
		return err
	}
	if k.farm.addr != "" && len(k.extents.chosen) > 0 {
		return usagef("--shape is for packages that run here: on a farm, open extents are the most")
	}
	measure := k.here
	if k.farm.addr != "" {
		measure = k.onFarm
	}
	samples, err := measure(ctx, args)
	if err != nil {
		return err
	}
	var rows []compareRow
	for i, path := range args {
		rows = append(rows, newCompareRow(path, samples[0], samples[i], i == 0))
	}
	table := humanize.NewTable("PACKAGE", ">MEDIAN", "INTERVAL", ">MIN", ">SPEED-UP", "INTERVAL", "VERDICT").Optional("MIN", "INTERVAL")
	return list(k.app, rows, table, compareRow.cells)
}

func newCompareRow(path string, first, own []float64, isFirst bool) compareRow {
	s, i := stats.Of(own), stats.MedianIntervalAt(own, stats.DecisionLevel)
	row := compareRow{
		Package: path, MedianSeconds: s.Median, LowSeconds: i.Low, HighSeconds: i.High, Level: i.Level, MinSeconds: s.Min,
		Paired: stats.PairedRatio(first, own),
	}
	if !isFirst {
		row.Verdict = row.Paired.Verdict()
	}
	return row
}

func (r compareRow) cells() []string {
	cells := []string{
		r.Package, humanize.Seconds(r.MedianSeconds), humanize.Interval(r.LowSeconds, r.HighSeconds, r.Level, stats.DecisionLevel), humanize.Seconds(r.MinSeconds),
		fmt.Sprintf("%.2fx", r.Ratio), humanize.Missing, humanize.Missing,
	}
	if r.Verdict != "" {
		cells[5], cells[6] = fmt.Sprintf("%.3f–%.3fx", r.Low, r.High), r.Verdict
	}
	return cells
}

// here times packages on this machine and returns seconds per execution by package.
func (k *compareCommand) here(ctx context.Context, packages []string) (samples [][]float64, err error) {
	var files []string
	for _, path := range packages {
		file, done, err := k.inputFile(path)
		if err != nil {
			return nil, err
		}
		defer done()
		files = append(files, file)
	}
	models, err := loadToTime(files, k.extents)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeModels(models)) }()
	release, err := k.machine.time(ctx, k.farm.log.logger(k.stderr))
	if err != nil {
		return nil, err
	}
	defer release()
	return packagerun.Turns(ctx, models, k.rounds, k.number)
}

// loadToTime loads packages and sets random inputs.
func loadToTime(files []string, extents extentsFlag) (models []*aot.Model, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeModels(models))
		}
	}()
	var manifests []*aot.Manifest
	for _, file := range files {
		m, err := aot.Load(file)
		if err != nil {
			return models, err
		}
		models, manifests = append(models, m), append(manifests, m.Manifest())
	}
	chosen, err := extents.of(manifests...)
	if err != nil {
		return models, err
	}
	for i, m := range models {
		if err := m.SetInputs(packagerun.RandomInputs(manifests[i], chosen)); err != nil {
			return models, err
		}
	}
	return models, nil
}

func closeModels(models []*aot.Model) (err error) {
	for _, m := range models {
		err = errors.Join(err, m.Close())
	}
	return err
}

// onFarm times packages on one device of a farm.
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
