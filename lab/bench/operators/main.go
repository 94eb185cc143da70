package operators

import (
	"context"
	"flag"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/lab/bench"
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
	flags.StringVar(&o.set, "set", "ansor", "the sets to measure, separated by commas: "+setNames())
	names := flags.String("operators", "", "the operators of the set to measure, separated by commas (default all)")
	batches := flags.String("batch", "1,16", "batch sizes of the set")
	threads := flags.String("threads", "1,2", "numbers of threads")
	flags.StringVar(&o.dir, "dir", defaultDir, "folder that keeps references")
	flags.StringVar(&o.results, "results", bench.Folder, "folder that keeps the rows of each kind of machine")
	flags.StringVar(&o.version, "version", "", "version of the tree; workloads that have a row of it are not measured again")
	flags.BoolVar(&o.again, "again", false, "measure also what was measured before")
	flags.StringVar(&o.peers, "peers", "", "folder that scripts/peers.sh made: take turns with its libraries where they compute the same")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *names != "" {
		o.operators = strings.Split(*names, ",")
	}
	sizes, err := bench.Positive("-batch", *batches)
	if err != nil {
		return o, err
	}
	for _, n := range sizes {
		o.batches = append(o.batches, int64(n))
	}
	o.threads, err = bench.Positive("-threads", *threads)
	return o, err
}
