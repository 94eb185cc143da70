package operators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/builder"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent/hostlock"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
	"github.com/tilth-dev/tilth/runner"
)

// options holds the command line.
type options struct {
	set       string
	operators []string
	batches   []int64
	threads   []int
	dir       string
	results   string
	version   string
	again     bool
	// peers is the folder of the libraries to compare with; empty means none.
	peers string
}

// suite is shared by all tasks with the same number of threads.
type suite struct {
	options
	target   *target.Target
	backend  backend.Backend
	machine  roofline.Rates
	tc       *toolchain.Toolchain
	compiler *builder.Compiler
	limits   runner.Limits
	scratch  string
	// peers lists the libraries to compare with.
	peers []peer
}

const (
	// sampleTime and maxSamples exceed those of a search, because the first samples after a pause are slow.
	sampleTime = 150 * time.Millisecond
	maxSamples = 60
	// atOnce is the number of workloads that are built before they are measured. It bounds the loss of an interrupted
	// run.
	atOnce = 4
	// referenceTime is generous: a reference is scalar single-threaded code, and the largest workloads have 200
	// GFLOP.
	referenceTime = 20 * time.Minute
)

func newSuite(ctx context.Context, o options, threads int, scratch string) (*suite, error) {
	t, err := target.Native(threads)
	if err != nil {
		return nil, err
	}
	by, err := registry.Of(t)
	if err != nil {
		return nil, err
	}
	tc, err := toolchain.Find(ctx, os.Getenv(toolchain.Variable))
	if err != nil {
		return nil, err
	}
	cache, err := builder.OpenCache(filepath.Join(o.dir, "objects"), 0)
	if err != nil {
		return nil, err
	}
	compiler := &builder.Compiler{Toolchain: tc, Cache: cache, Parallel: target.Processors(), CandidateTime: time.Minute}
	limits := runner.Limits{Candidate: time.Minute, Reference: referenceTime, Budget: sampleTime, Samples: maxSamples}
	return &suite{options: o, target: t, backend: by, tc: tc, compiler: compiler, limits: limits, scratch: scratch}, nil
}

// measureAll measures the requested workloads without a row and writes the table of all rows.
func measureAll(ctx context.Context, o options, w io.Writer) (err error) {
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	workloads, err := operators(o.set, o.operators, o.batches)
	if err != nil {
		return err
	}
	machine, err := target.Native(0)
	if err != nil {
		return err
	}
	kind := machine.Processor()
	r, err := bench.Open[row](o.results, kind, rowsName)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "operators-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, threads := range o.threads {
		b, err := newSuite(ctx, o, threads, scratch)
		if err != nil {
			return err
		}
		if err := b.measure(ctx, workloads, r); err != nil {
			return err
		}
	}
	var out strings.Builder
	writeTable(&out, kind, sorted(r.Rows))
	_, err = io.WriteString(w, out.String())
	return err
}

// measure measures the workloads a few at a time and saves their rows.
func (b *suite) measure(ctx context.Context, workloads []workload, r *rows) (err error) {
	var list []workload
	for _, w := range workloads {
		if b.again || !have(r, b.row(w)) {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if b.machine, err = b.rates(ctx); err != nil {
		return err
	}
	if b.options.peers != "" {
		if b.peers, err = libraries(ctx, b.options.peers, b.target.Threads()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeAll(b.peers)) }()
	}
	for few := range slices.Chunk(list, atOnce) {
		measured, err := b.measureFew(ctx, few)
		if err != nil {
			return err
		}
		if err := r.Add(measured); err != nil {
			return err
		}
	}
	return nil
}

// rates returns the peak rates of the machine.
func (b *suite) rates(ctx context.Context) (rates roofline.Rates, err error) {
	lock, err := hostlock.New(hostlock.DefaultDir())
	if err != nil {
		return rates, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return rates, err
	}
	list, err := farm.MeasureRates(ctx, b.tc, []*target.Target{b.target}, lock, filepath.Join(cache, "tilth"))
	if err != nil {
		return rates, err
	}
	return list[0], nil
}

// measureFew builds and times default schedules in close succession, and then compares them with libraries.
func (b *suite) measureFew(ctx context.Context, workloads []workload) ([]row, error) {
	var tasks []*task
	for _, one := range workloads {
		t, err := b.build(ctx, one)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	if err := bench.Timed(ctx, func() error {
		for _, t := range tasks {
			if err := b.time(ctx, t); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	var list []row
	for _, t := range tasks {
		r := b.finished(t)
		if err := bench.Timed(ctx, func() (err error) {
			r.Against, err = b.compare(ctx, t)
			return err
		}); err != nil {
			return nil, err
		}
		list = append(list, r)
		fmt.Fprintf(os.Stderr, "%s, batch %d, %d threads: %s%s\n", t.title(), t.batch, b.target.Threads(), humanize.Seconds(r.DefaultSeconds), r.versus())
	}
	return list, nil
}

// finished returns the row of a measured task.
func (b *suite) finished(t *task) row {
	r := b.row(t.workload)
	r.CPU, r.Machine = b.target.Model(), b.machine
	if r.FlopSeconds, r.ByteSeconds = b.machine.Limits(t.Workload, t.flop); t.unrated {
		r.FlopSeconds = 0
	}
	r.DefaultSeconds, r.DefaultPoint, r.Failures = t.seconds, t.point, t.failures
	return r
}

// row returns the row of a workload without measurements.
func (b *suite) row(w workload) row {
	r := row{Operator: w.name, Shape: w.shape, Batch: w.batch, Threads: b.target.Threads(), Version: b.version, Flop: w.flop}
	r.ConstantBytes, r.OtherBytes = roofline.Bytes(w.Workload)
	return r
}
