// Command operators measures single operators: the set of Ansor's evaluation, or the tasks of a model. It writes a Markdown table
// with, for each, the limit that the machine sets (its multiply-add rate and memory bandwidth are measured in the same run), the
// latency of the default schedule and that of the best one after some trials.
//
//	go run ./bench/operators -threads 2 -trials 256
//	go run ./bench/operators -operators C2D,DEP -batch 1
//	go run ./bench/operators -model resnet50.onnx -trials 0
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "operators:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("operators", flag.ContinueOnError)
	flags.StringVar(&o.filter, "task", "", "measure only tasks whose name has this text")
	flags.StringVar(&o.model, "model", "", "ONNX file, or the name of a built-in model, whose tasks to measure in place of Ansor's set")
	names := flags.String("operators", "", "the operators of the set to measure, separated by commas (default all)")
	batches := flags.String("batch", "1,16", "batch sizes of the set")
	flags.StringVar(&o.target, "target", "native", "target to compile for; it must run here")
	flags.IntVar(&o.threads, "threads", 1, "threads")
	flags.IntVar(&o.trials, "trials", 64, "trials of each workload beyond its default schedule")
	flags.IntVar(&o.random, "random", 0, "measure so many random points, and say how well the analytic cost ranks them")
	flags.StringVar(&o.algorithm, "tuner", "ga", "search algorithm")
	flags.StringVar(&o.cache, "cache", ".tools/operators", "folder that keeps references")
	flags.Func("point", "measure this point of each workload's space in place of tuning, e.g. 'tw=6 tv=2 th=1'; may be repeated", func(text string) error {
		o.named = append(o.named, text)
		return nil
	})
	launcher := flags.String("launcher", "", "command that runs what is timed, e.g. 'taskset -c 0'")
	flags.BoolVar(&o.points, "points", false, "write the default and the best point of each workload, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.launcher = strings.Fields(*launcher)
	if *names != "" {
		o.operators = strings.Split(*names, ",")
	}
	for _, text := range strings.Split(*batches, ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("-batch %s: %q is no batch size; give positive numbers separated by commas", *batches, text)
		}
		o.batches = append(o.batches, n)
	}
	return measureAll(ctx, o, os.Stdout)
}
