package operators

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/lab/bench/results"
)

// defaultDir is the cache of compiled references.
const defaultDir = ".tools/operators"

// Main runs the operator benchmark.
func Main(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "table" {
		return runTable(args[1:], os.Stdout)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	return measureAll(ctx, o, os.Stdout)
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("operators", flag.ContinueOnError)
	flags.StringVar(&o.filter, "task", "", "measure only tasks whose name has this text")
	flags.StringVar(&o.model, "model", "", "ONNX file, or the name of a built-in model, whose tasks to measure in place of a set")
	flags.StringVar(&o.set, "set", "ansor", "the sets to measure, separated by commas: "+setNames())
	names := flags.String("operators", "", "the operators of the set to measure, separated by commas (default all)")
	batches := flags.String("batch", "1,16", "batch sizes of the set")
	threads := flags.String("threads", "1,2", "numbers of threads")
	flags.StringVar(&o.target, "target", "native", "target to compile for; it must run here")
	flags.DurationVar(&o.tuning, "time", 0, "tuning time of each workload; 0 = default schedules only")
	flags.StringVar(&o.algorithm, "tuner", "ga", "search algorithm")
	flags.StringVar(&o.dir, "dir", defaultDir, "folder that keeps references")
	flags.StringVar(&o.results, "results", results.Folder, "folder that keeps the rows of each kind of machine")
	flags.StringVar(&o.version, "version", "", "version of the tree; workloads that have a row of it are not measured again")
	flags.BoolVar(&o.again, "again", false, "measure also what was measured before")
	flags.StringVar(&o.peers, "peers", "", "folder that scripts/peers.sh made: take turns with its libraries where they compute the same")
	launcher := flags.String("launcher", "", "command that runs what is timed, e.g. 'taskset -c 0'")
	flags.BoolVar(&o.points, "points", false, "write the default and the best point of each workload, too")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.launcher = strings.Fields(*launcher)
	if *names != "" {
		o.operators = strings.Split(*names, ",")
	}
	sizes, err := positive("-batch", *batches)
	if err != nil {
		return o, err
	}
	for _, n := range sizes {
		o.batches = append(o.batches, int64(n))
	}
	o.threads, err = positive("-threads", *threads)
	return o, err
}

// positive parses comma-separated positive numbers.
func positive(flag, text string) (list []int, err error) {
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %s: give positive numbers separated by commas", flag, text)
		}
		list = append(list, n)
	}
	return list, nil
}
