package soak

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options holds the command line.
type options struct {
	runs     int
	limit    time.Duration
	settings []setting
	load     int
	parallel int
	timeout  time.Duration
	ledger   string
	keep     string
	packages []string
	// revision is the commit under test.
	revision string
}

var everything = []string{"./..."}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.IntVar(&o.runs, "runs", 20, "runs of a package in each setting without a failure after them, those of earlier calls included")
	flags.DurationVar(&o.limit, "limit", 0, "begin no run after this time; 0 = no limit")
	modes := flags.String("modes", "plain,race", "plain, race or both")
	processors := flags.String("procs", "1,8", "values of GOMAXPROCS")
	flags.IntVar(&o.load, "load", runtime.NumCPU(), "processes that do nothing but compute meanwhile")
	flags.IntVar(&o.parallel, "p", runtime.NumCPU(), "packages tested at a time")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "limit of one package's tests")
	flags.StringVar(&o.ledger, "ledger", "lab/chaos/soak/ledger.jsonl", "file that sums up the runs of all calls")
	flags.StringVar(&o.keep, "keep", ".tools/soak", "folder of the output of what failed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.packages = flags.Args(); len(o.packages) == 0 {
		o.packages = everything
	}
	o.revision = revision(o.ledger)
	for _, mode := range strings.Split(*modes, ",") {
		if mode != "plain" && mode != "race" {
			return o, fmt.Errorf("-modes %s: %q is neither plain nor race", *modes, mode)
		}
		for _, n := range strings.Split(*processors, ",") {
			count, err := strconv.Atoi(n)
			if err != nil || count < 1 {
				return o, fmt.Errorf("-procs %s: %q is not a number of processors", *processors, n)
			}
			o.settings = append(o.settings, setting{Race: mode == "race", Processors: count})
		}
	}
	return o, nil
}

// Main repeats tests.
func Main(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	binaries := map[bool][]binary{}
	for _, s := range o.settings {
		if binaries[s.Race] != nil {
			continue
		}
		if binaries[s.Race], err = build(ctx, scratch, s.Race, o.packages); err != nil {
			return err
		}
	}
	l, err := openLedger(o.ledger)
	if err != nil {
		return err
	}
	if slices.Equal(o.packages, everything) {
		l.forget(binaries[o.settings[0].Race])
	}
	failed, err := repeat(ctx, o, binaries, l)
	l.table(os.Stdout)
	switch {
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d runs failed; their output is in %s", failed, o.keep)
	}
	return nil
}

// revision returns the commit in the working folder, and marks changes to files other than the ledger.
func revision(ledger string) string {
	commit, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "an unknown revision"
	}
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ".", ":(exclude)"+ledger).Run() != nil {
		return strings.TrimSpace(string(commit)) + "-dirty"
	}
	return strings.TrimSpace(string(commit))
}
