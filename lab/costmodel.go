package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench/replay"
)

const costModelLong = `Report how well cost models rank the candidates of tasks they were not trained on.

Files are sets or samples of 'lab record', folders of them, or exports
of records (.jsonl). The tasks are divided into folds, similar tasks into one, and models of
the other folds rank each fold. The tables have the share of pairs in the right order
(of those that differ by more than --noise, of those whose intervals do not overlap
either, of those that differ by 5 %, and of all), how many of the fastest 5 % are among
as many with the best score, how much slower than the best the best of 16 picks is, and
by what factor predicted latencies are off relative to others of their task. Means are
over the tasks that have such pairs.

Several samples of a workload are repeated recordings of the same candidates, whose
measurements are merged. With --again, a further recording is used as if it were a
model, which shows how much of the order is noise.

With -o a model of all tasks is written instead, for --cost-model of 'tilth tune',
'tilth compile' and 'tilth tuner'; with --csv its training data, for LightGBM.`

// costModelFlags selects the comparison.
type costModelFlags struct {
	target, compiler   string
	threads, folds     int
	loss               string
	options            costmodel.Options
	noise              float64
	tasks, json        bool
	output, csv, again string
}

func newCostModel() *cobra.Command {
	f := costModelFlags{options: costmodel.Options{LearningRate: 0.1, Seed: 1}}
	c := &cobra.Command{
		Use: "costmodel FILE...", Short: "Compare cost models on tasks kept out of training", Long: costModelLong,
		Example: "  lab costmodel sets\n  lab costmodel survey -o model.txt",
		Args:    cobra.MinimumNArgs(1),
	}
	targetFlags(c, &f.target, &f.compiler)
	c.Flags().IntVar(&f.threads, "threads", 1, "threads of that target")
	c.Flags().IntVar(&f.folds, "folds", 5, "number of folds")
	c.Flags().StringVar(&f.loss, "loss", "", "`mixed`, latency, throughput or order (default: compare all; -o takes mixed, as searches do)")
	c.Flags().IntVar(&f.options.Trees, "trees", f.options.Trees, "trees of a model (default: by the number of tasks)")
	c.Flags().Float64Var(&f.noise, "noise", 0.02, "least relative difference of latencies that is not noise")
	c.Flags().Uint64Var(&f.options.Seed, "seed", f.options.Seed, "seed of the models")
	c.Flags().BoolVar(&f.tasks, "tasks", false, "show each task, not kinds of them")
	c.Flags().StringVarP(&f.output, "output", "o", "", "`file` to write a model of all tasks to, instead of comparing")
	c.Flags().StringVar(&f.csv, "csv", "", "`file` to write the training data to, instead of comparing")
	c.Flags().StringVar(&f.again, "again", "", "`file` or folder of another recording of the same candidates, to compare with")
	c.MarkFlagsMutuallyExclusive("again", "output")
	c.MarkFlagsMutuallyExclusive("again", "csv")
	jsonFlag(c, &f.json)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		if err := f.check(); err != nil {
			return err
		}
		tasks, err := f.load(ctx, args)
		if err != nil {
			return err
		}
		if f.output != "" || f.csv != "" {
			return f.write(ctx, c.ErrOrStderr(), tasks)
		}
		rankers := f.rankers()
		if f.again != "" {
			again, err := loadSets([]string{f.again})
			if err != nil {
				return err
			}
			if tasks = replay.Common(tasks, again); len(tasks) == 0 {
				return fmt.Errorf("--again %s: has no candidate of %s", f.again, strings.Join(args, ", "))
			}
			rankers = append(rankers, replay.Again{Tasks: again})
		}
		return f.compare(ctx, c.OutOrStdout(), c.ErrOrStderr(), tasks, rankers)
	}
	return c
}

// load reads the tasks of all files.
func (f *costModelFlags) load(ctx context.Context, paths []string) ([]replay.MeasuredTask, error) {
	exported := func(path string) bool { return filepath.Ext(path) == ".jsonl" }
	tasks, err := loadSets(slices.DeleteFunc(slices.Clone(paths), exported))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if !exported(path) {
			continue
		}
		more, err := f.loadRecords(ctx, path)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, more...)
	}
	return tasks, nil
}

func (f *costModelFlags) loadRecords(ctx context.Context, path string) ([]replay.MeasuredTask, error) {
	machine, _, err := localTarget(ctx, f.target, f.threads, f.compiler)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tasks, err := replay.FromRecords(file, machine)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tasks, nil
}

// loadSets reads sets and samples. It pools recordings of the same candidates.
func loadSets(paths []string) ([]replay.MeasuredTask, error) {
	sets, err := replay.ReadAll(paths)
	if err != nil {
		return nil, err
	}
	var tasks []replay.MeasuredTask
	for _, s := range replay.Pool(sets) {
		t, err := replay.FromSet(s)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// losses lists the training losses by the name of the flag.
var losses = []struct {
	name string
	loss costmodel.Loss
}{{"mixed", costmodel.Mixed}, {"latency", costmodel.Latency}, {"throughput", costmodel.Throughput}, {"order", costmodel.Order}}

func (f *costModelFlags) check() error {
	if f.folds < 2 || f.options.Trees < 0 || f.noise < 0 {
		return fmt.Errorf("--folds %d, --trees %d, --noise %g: want at least 2, and no number below 0", f.folds, f.options.Trees, f.noise)
	}
	if f.loss == "" {
		return nil
	}
	for _, l := range losses {
		if l.name == f.loss {
			f.options.Loss = l.loss
			return nil
		}
	}
	return fmt.Errorf("--loss %s: want mixed, latency, throughput or order", f.loss)
}

func (f *costModelFlags) rankers() []replay.Ranker {
	list := []replay.Ranker{replay.Analytic{}}
	for _, l := range losses {
		if f.loss != "" && f.loss != l.name {
			continue
		}
		o := f.options
		o.Loss = l.loss
		list = append(list, replay.Learnt{Label: l.name, Options: o})
	}
	return list
}

func (f *costModelFlags) compare(ctx context.Context, out, progress io.Writer, tasks []replay.MeasuredTask, rankers []replay.Ranker) error {
	took := map[string]float64{}
	o := replay.CompareOptions{Folds: f.folds, Noise: f.noise, Seconds: func(ranker string, s float64) { took[ranker] += s }}
	results, err := replay.CompareModels(ctx, tasks, rankers, o)
	if err != nil {
		return err
	}
	var shown []replay.Accuracy
	if f.tasks || f.json {
		shown = results
	}
	for _, r := range rankers {
		if !f.json && !f.tasks {
			shown = append(shown, replay.ByKind(results, r.Name())...)
		}
		shown = append(shown, replay.MeanAccuracy(results, r.Name()))
		if !f.json {
			fmt.Fprintf(progress, "%s: %s a fold\n", r.Name(), humanize.Seconds(took[r.Name()]/float64(f.folds)))
		}
	}
	if f.json {
		return writeJSON(out, shown)
	}
	table := humanize.NewTable("TASK", ">TASKS", "MODEL", ">PAIRS", ">APART", ">5 % APART", ">ALL PAIRS", ">TOP 5 %", ">BEST OF 16", ">OFF BY")
	share := func(s replay.Share) string {
		if s.Pairs == 0 {
			return humanize.Missing
		}
		return fmt.Sprintf("%.3f", s.Right)
	}
	for _, r := range shown {
		table.Row(strings.TrimSpace(r.Task), strconv.Itoa(r.Tasks), r.Ranker, share(r.Pairwise), share(r.Resolved), share(r.Clear), share(r.AllPairs),
			fmt.Sprintf("%.3f", r.Recall), fmt.Sprintf("+%.1f %%", 100*r.Regret), fmt.Sprintf("%.2fx", r.Off))
	}
	return table.Write(out)
}
