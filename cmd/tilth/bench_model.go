package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/costmodel/accuracy"
	"github.com/tilth-dev/tilth/internal/show"
	"github.com/tilth-dev/tilth/replay"
)

const benchModelLong = `Say how well cost models rank the candidates of tasks that they were not trained on.

Files are sets of 'tilth bench record', folders of them, or exports of records
(.jsonl). The tasks are divided into folds, and each fold is ranked by models of
the others: the share of pairs in the right order (of those that differ by more
than --noise, of those whose intervals do not overlap either, and of all), how
many of the fastest 5 % are among as many of the best score, and how much slower
than the best the best of 16 picks is.`

// benchModelFlags say what to compare.
type benchModelFlags struct {
	target, compiler, python string
	threads, folds           int
	trees, leaves            int
	noise                    float64
	seed                     uint64
	json                     bool
}

func newBenchModel(a *app) *cobra.Command {
	var f benchModelFlags
	c := &cobra.Command{
		Use: "model FILE...", Short: "Compare cost models on tasks kept out of training", Long: benchModelLong,
		Example: "  tilth bench model sets\n  tilth bench model sets --xgboost /usr/bin/python3",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&f.target, "target", "native", "target whose exported records are read: native, a preset, or a JSON `file`")
	c.Flags().IntVar(&f.threads, "threads", 1, "threads of that target")
	c.Flags().IntVar(&f.folds, "folds", 5, "parts that the tasks are divided into")
	c.Flags().IntVar(&f.trees, "trees", 100, "trees of a model")
	c.Flags().IntVar(&f.leaves, "leaves", 31, "leaves of a tree")
	c.Flags().Float64Var(&f.noise, "noise", 0.02, "share by which latencies must differ to be told apart")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the models")
	c.Flags().StringVar(&f.python, "xgboost", "", "compare with XGBoost, too: a Python `interpreter` that has it")
	jsonFlag(c, &f.json)
	compilerFlag(c, &f.compiler)
	return a.leaf(c, func(ctx context.Context, args []string) (err error) {
		if f.folds < 2 || f.trees < 1 || f.leaves < 2 || f.noise < 0 {
			return usagef("--folds %d, --trees %d, --leaves %d, --noise %g: want at least 2, 1, 2 and 0", f.folds, f.trees, f.leaves, f.noise)
		}
		tasks, err := f.load(ctx, args)
		if err != nil {
			return err
		}
		scratch, err := os.MkdirTemp("", "tilth-model-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
		return f.compare(ctx, a, tasks, f.rankers(scratch))
	})
}

// load reads the tasks of all files.
func (f *benchModelFlags) load(ctx context.Context, paths []string) ([]accuracy.Task, error) {
	var tasks []accuracy.Task
	for _, path := range paths {
		var more []accuracy.Task
		var err error
		if filepath.Ext(path) == ".jsonl" {
			more, err = f.loadRecords(ctx, path)
		} else {
			more, err = loadSets(path)
		}
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, more...)
	}
	return tasks, nil
}

func (f *benchModelFlags) loadRecords(ctx context.Context, path string) ([]accuracy.Task, error) {
	machine, _, err := localTarget(ctx, f.target, f.threads, f.compiler)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tasks, err := accuracy.FromRecords(file, machine)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tasks, nil
}

func loadSets(path string) ([]accuracy.Task, error) {
	sets, err := replay.ReadAll([]string{path})
	if err != nil {
		return nil, err
	}
	var tasks []accuracy.Task
	for _, s := range sets {
		t, err := accuracy.FromSet(s)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

func (f *benchModelFlags) rankers(scratch string) []accuracy.Ranker {
	losses := []struct {
		name string
		loss costmodel.Loss
	}{{"throughput", costmodel.Throughput}, {"order", costmodel.Order}}
	list := []accuracy.Ranker{accuracy.Analytic{}}
	for _, l := range losses {
		o := costmodel.Options{Seed: f.seed, Trees: f.trees, Leaves: f.leaves, Loss: l.loss}
		list = append(list, accuracy.Learnt{Label: l.name, Options: o})
		if f.python != "" {
			list = append(list, accuracy.XGBoost{Label: "xgboost " + l.name, Python: f.python, Dir: scratch, Trees: f.trees, Leaves: f.leaves,
				Loss: l.loss, Threads: runtime.GOMAXPROCS(0)})
		}
	}
	return list
}

func (f *benchModelFlags) compare(ctx context.Context, a *app, tasks []accuracy.Task, rankers []accuracy.Ranker) error {
	took := map[string]float64{}
	o := accuracy.Options{Folds: f.folds, Noise: f.noise, Seconds: func(ranker string, _ int, s float64) { took[ranker] += s }}
	results, err := accuracy.Compare(ctx, tasks, rankers, o)
	if err != nil {
		return err
	}
	for _, r := range rankers {
		results = append(results, accuracy.Mean(results, r.Name()))
		if !f.json {
			fmt.Fprintf(a.stderr, "%s: %s a fold\n", r.Name(), show.Seconds(took[r.Name()]/float64(f.folds)))
		}
	}
	table := show.NewTable("TASK", "MODEL", ">PAIRS", ">APART", ">ALL PAIRS", ">TOP 5 %", ">BEST OF 16")
	share := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	return list(a.stdout, f.json, results, table, func(r accuracy.Result) []string {
		return []string{strings.TrimSpace(r.Task), r.Ranker, share(r.Pairwise), share(r.Resolved), share(r.AllPairs), share(r.Recall), fmt.Sprintf("+%.1f %%", 100*r.Regret)}
	})
}
