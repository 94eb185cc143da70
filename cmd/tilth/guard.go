package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/stats"
)

const (
	// guardBlocks is the number of blocks in the time limit. After guardLooks of them, the command ends if the
	// question is decided.
	guardBlocks = 64
	// guardTurn is how long a package runs in a turn, at least.
	guardTurn = time.Millisecond
	// maxGuardThreshold refuses 3 for 3%.
	maxGuardThreshold = 1.0
)

var guardLooks = []int{16, 32}

// guardCommand tests whether a package is slower than a baseline.
type guardCommand struct {
	*app
	threshold percentFlag
	limit     time.Duration
	update    bool
	extents   extentsFlag
	machine   machineFlags
	log       logFlag
}

// guardResult is the result of a guard.
type guardResult struct {
	Baseline  string  `json:"baseline"`
	Package   string  `json:"package"`
	Threshold float64 `json:"threshold"`
	stats.Slowdown
	// Blocks is the number of times that both packages were loaded.
	Blocks         int     `json:"blocks"`
	ElapsedSeconds float64 `json:"elapsed_s"`
	// Updated is set if the package became the baseline.
	Updated bool `json:"updated"`
}

const guardLong = `Test whether a package is slower than a baseline package, for CI.

Both packages are timed in turns, in many blocks. Each block copies and loads them anew,
because the same code can differ by several per cent with the place of its memory. Other
work on the machine lengthens the test, but does not change its error probabilities: it
calls an equally fast package slower at most once in 1,000 runs, and misses a slowdown
by --threshold at most once in 20.

The exit status is 0 if the package is not slower, 1 if it is, and 3 if --time was too
short to decide.

With --update, a package that is not slower replaces the baseline, which need not exist
at first.`

func newGuard(a *app) *cobra.Command {
	g := &guardCommand{app: a, threshold: 0.03}
	c := &cobra.Command{
		Use: "guard BASELINE.tar PACKAGE.tar", Short: "Test whether a package is slower than a baseline", Long: guardLong,
		Example: "  tilth guard released.tar new.tar\n  tilth guard ~/.cache/baseline.tar new.tar --update --threshold 5%",
		Args:    cobra.ExactArgs(2),
	}
	c.Flags().Var(&g.threshold, "threshold", "smallest slowdown to find, such as 3% or 0.03")
	c.Flags().DurationVar(&g.limit, "time", time.Minute, "`time` to decide in")
	c.Flags().BoolVar(&g.update, "update", false, "replace the baseline by a package that is not slower")
	atLeast(c, 1, "time")
	g.jsonFlag(c)
	g.extents.add(c)
	g.machine.add(c, "this machine")
	g.log.add(c, slog.LevelWarn)
	return a.leaf(c, g.run)
}

func (g *guardCommand) run(ctx context.Context, args []string) error {
	result := guardResult{Baseline: args[0], Package: args[1], Threshold: float64(g.threshold)}
	_, err := os.Stat(args[0])
	switch {
	case g.update && errors.Is(err, fs.ErrNotExist):
		result.Ratio, result.Verdict = 1, stats.NotSlower
		err = g.loads(args[1])
	case err != nil:
		err = fmt.Errorf("read the baseline: %w: --update makes the first one", err)
	default:
		err = g.measure(ctx, &result)
	}
	if result.Updated = err == nil && g.update && result.Verdict == stats.NotSlower; result.Updated {
		err = g.replace(args[0], args[1])
	}
	if err != nil {
		return err
	}
	if err := g.printResult(result, "%s\n", result); err != nil {
		return err
	}
	switch result.Verdict {
	case stats.Slower:
		return fmt.Errorf("%s is slower than %s", result.Package, result.Baseline)
	case stats.Undecided:
		return &undecidedError{fmt.Sprintf("undecided after %v: give more --time", g.limit)}
	}
	return nil
}

// String describes the result in a line.
func (r guardResult) String() string {
	if r.Blocks == 0 {
		return fmt.Sprintf("%s is the first baseline", r.Package)
	}
	return fmt.Sprintf("%s takes %.3fx the time of the baseline (%.3f to %.3fx): %s", r.Package, r.Ratio, r.Low, r.High, r.Verdict)
}

// undecidedError means that a test needs more time.
type undecidedError struct{ message string }

func (e *undecidedError) Error() string { return e.message }

// measure compares the packages until the question is decided or the time is over.
func (g *guardCommand) measure(ctx context.Context, result *guardResult) error {
	if err := g.loads(result.Baseline, result.Package); err != nil {
		return err
	}
	release, err := g.machine.time(ctx, g.log.logger(g.stderr))
	if err != nil {
		return err
	}
	defer release()
	test := stats.SlowdownTest{Threshold: result.Threshold, Looks: len(guardLooks) + 1}
	var ratios []float64
	for began := time.Now(); ; {
		ratio, err := g.block(ctx, [2]string{result.Baseline, result.Package}, g.limit/guardBlocks)
		if err != nil {
			return err
		}
		ratios = append(ratios, ratio)
		result.Blocks, result.ElapsedSeconds = len(ratios), time.Since(began).Seconds()
		last := time.Since(began) >= g.limit
		if !last && !slices.Contains(guardLooks, len(ratios)) {
			continue
		}
		if result.Slowdown = test.Judge(ratios, last); last || result.Verdict != stats.Undecided {
			return nil
		}
	}
}

// loads returns an error if a package cannot be loaded. It names the file, not a copy.
func (g *guardCommand) loads(packages ...string) error {
	models, err := loadToTime(packages, g.extents)
	if err != nil {
		return err
	}
	return closeModels(models)
}

// block returns the median ratio of the package's time to the baseline's, over turns in random order within a time.
// Copies in fresh memory are loaded in random order.
func (g *guardCommand) block(ctx context.Context, packages [2]string, length time.Duration) (ratio float64, err error) {
	end := time.Now().Add(length)
	first := rand.IntN(2)
	var files []string
	for k := range packages {
		file, done, err := inMemory(packages[first^k])
		if err != nil {
			return 0, err
		}
		defer done()
		files = append(files, file)
	}
	models, err := loadToTime(files, g.extents)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeModels(models)) }()
	pair, number := [2]*aot.Model{models[first], models[1-first]}, 1
	for _, m := range pair {
		warm, err := m.Time(ctx, 1, 1)
		if err != nil {
			return 0, err
		}
		number = max(number, int(guardTurn.Seconds()/warm[0]))
	}
	var ratios []float64
	for len(ratios)%2 == 0 || time.Now().Before(end) { // only an odd number has the same median if the packages swap names
		var seconds [2]float64
		first := rand.IntN(2)
		for k := range seconds {
			turn, err := pair[first^k].Time(ctx, 1, number)
			if err != nil {
				return 0, err
			}
			seconds[first^k] = turn[0]
		}
		ratios = append(ratios, seconds[1]/seconds[0])
	}
	return stats.Of(ratios).Median, nil
}

// inMemory copies a file into memory and returns a path of the copy, which exists until done is called.
func inMemory(path string) (copied string, done func(), err error) {
	from, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer from.Close()
	to, err := signing.Sealed(from, math.MaxInt64)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", to.Fd()), func() { _ = to.Close() }, nil
}

// replace makes the package the baseline.
func (g *guardCommand) replace(baseline, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	return filesystem.WriteFile(baseline, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
}

// percentFlag is a share, written as 3% or 0.03.
type percentFlag float64

// Set implements pflag.Value.
func (f *percentFlag) Set(text string) error {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= maxGuardThreshold) {
		return fmt.Errorf("want a share such as 3%% or 0.03, at most %g", maxGuardThreshold)
	}
	*f = percentFlag(v)
	return nil
}

// String implements pflag.Value.
func (f *percentFlag) String() string { return strconv.FormatFloat(100*float64(*f), 'g', -1, 64) + "%" }

// Type implements pflag.Value.
func (f *percentFlag) Type() string { return "share" }
