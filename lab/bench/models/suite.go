package models

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/modelzoo"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/bench"
)

// suite tunes, compiles and compares models one after another.
type suite struct {
	form
	// seconds and runs are those of each comparison.
	seconds float64
	runs    int
	tilth   string
	dir     string
	threads []int
	// budget is the tuning time of a model for each number of threads.
	budget  string
	again   bool
	folder  string
	version string
	machine string
	results *bench.File[result]
}

// entry is a model to compare.
type entry struct {
	name   string
	path   string // of the ONNX file
	inputs string // .npz; empty = random
}

// runSuite compares models in a form: the named ones, or all that the form covers. It skips models already
// compared with this version of the tree.
func runSuite(ctx context.Context, f form, args []string, w io.Writer) error {
	s := &suite{form: f}
	names, err := s.parse(args)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = s.models
	}
	return s.run(ctx, names, w)
}

// parse parses the flags of a suite and returns the named models.
func (s *suite) parse(args []string) (names []string, err error) {
	flags := flag.NewFlagSet(s.file, flag.ContinueOnError)
	flags.Float64Var(&s.seconds, "seconds", 10, "about how long to compare packages of one model and number of threads")
	flags.IntVar(&s.runs, "runs", 3, "executions in a turn")
	flags.StringVar(&s.tilth, "tilth", "bin/tilth", "the program to compare")
	flags.StringVar(&s.dir, "dir", ".tools/bench", "folder for models, records and packages")
	flags.StringVar(&s.folder, "results", bench.Folder, "folder that keeps the results of each kind of machine")
	flags.StringVar(&s.version, "version", "", "version of the tree; what was compared with it is not compared again")
	flags.StringVar(&s.budget, "time", "5m", "tuning time of a model for each number of threads")
	untuned := flags.Bool("untuned", false, "compare default schedules only")
	flags.BoolVar(&s.again, "again", false, "compare also what was compared before")
	threads := flags.String("threads", "1,2", "numbers of threads")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *untuned {
		s.kinds = slices.DeleteFunc(s.kinds, func(k kind) bool { return k.tuned })
	}
	s.threads, err = bench.Positive("-threads", *threads)
	return flags.Args(), err
}

func (s *suite) run(ctx context.Context, names []string, w io.Writer) error {
	entries, err := s.entries(names)
	if err != nil {
		return err
	}
	machine, err := target.Native(0)
	if err != nil {
		return err
	}
	s.machine = machine.Processor()
	if s.results, err = bench.Open[result](s.folder, s.machine, s.file); err != nil {
		return err
	}
	return s.all(ctx, entries, w)
}

func (s *suite) entries(names []string) (list []entry, err error) {
	for _, n := range names {
		path, inputs, _ := strings.Cut(n, ":")
		e := entry{name: strings.TrimSuffix(filepath.Base(path), ".onnx"), path: path, inputs: inputs}
		if !strings.HasSuffix(path, ".onnx") {
			e.path = s.written(path, s.write)
			if err := modelzoo.Check(path, modelzoo.Options{}); err != nil {
				return nil, err
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// written returns the file of a built-in model that is written with the given flags.
func (s *suite) written(name string, flags []string) string {
	return filepath.Join(s.dir, strings.Join(append([]string{name}, flags...), "")+".onnx")
}

// all compares all models. It continues after failures and returns an error that names them.
func (s *suite) all(ctx context.Context, entries []entry, w io.Writer) error {
	var failed error
	for _, e := range entries {
		for _, n := range s.threads {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := s.one(ctx, e, n, w); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s on %s: %w", e.name, bench.Threads(n), err))
			}
		}
	}
	var out strings.Builder
	s.table(&out, s.machine, s.results.Rows)
	_, err := io.WriteString(w, out.String())
	return errors.Join(err, failed)
}

func (s *suite) one(ctx context.Context, e entry, threads int, w io.Writer) error {
	kinds := slices.DeleteFunc(slices.Clone(s.kinds), func(k kind) bool { return !s.has(e, k) })
	if !s.again && s.version != "" && have(s.results, e.name, threads, s.version, kinds) {
		return nil
	}
	var rows []result
	for _, k := range kinds {
		of, err := s.source(ctx, e, k)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s, %s, %s\n", e.name, bench.Threads(threads), k.schedules)
		r, err := s.compiled(ctx, of, threads, k)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	if err := s.compare(ctx, e, threads, rows); err != nil {
		return err
	}
	return s.results.Add(rows)
}

// path returns the model file for packages of a kind: the compared model or its float twin.
func (s *suite) path(e entry, k kind) string {
	switch {
	case !k.floats:
		return e.path
	case s.isBuiltIn(e):
		return s.written(e.name, nil)
	}
	return strings.TrimSuffix(strings.TrimSuffix(e.path, ".onnx"), quantisedSuffix) + ".onnx"
}

func (s *suite) isBuiltIn(e entry) bool { return e.path == s.written(e.name, s.write) }

// has reports whether there is a model for packages of a kind.
func (s *suite) has(e entry, k kind) bool {
	if !k.floats || s.isBuiltIn(e) {
		return true
	}
	path := s.path(e, k)
	_, err := os.Stat(path)
	return err == nil && path != e.path
}

// source returns the model for packages of a kind. Built-in models are written on first use.
func (s *suite) source(ctx context.Context, e entry, k kind) (entry, error) {
	flags := s.write
	if k.floats {
		flags = nil
	}
	e.path = s.path(e, k)
	if _, err := os.Stat(e.path); err == nil {
		return e, nil
	}
	_, err := bench.Output(ctx, s.tilth, append([]string{"model", e.name, "-o", e.path}, flags...)...)
	return e, err
}

// compiled compiles a package, after tuning if the kind requires it.
func (s *suite) compiled(ctx context.Context, e entry, threads int, k kind) (result, error) {
	base := filepath.Join(s.dir, fmt.Sprintf("%s-%d", e.name, threads))
	r := result{Model: e.name, Threads: threads, Schedules: k.schedules, Version: s.version}
	name := fmt.Sprintf("%s-%s.tar", base, strings.ReplaceAll(k.schedules, " ", "-"))
	arguments := append([]string{"compile", e.path, "--threads", strconv.Itoa(threads), "--no-cache", "--json", "-o", name}, k.arguments...)
	if k.tuned {
		records := filepath.Join(s.dir, "tilth.db")
		if err := s.tune(ctx, e, threads, records, base+".jsonl"); err != nil {
			return r, err
		}
		arguments = append(arguments, "--records", records)
	}
	answer, err := bench.Output(ctx, s.tilth, arguments...)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(answer, &r.Compiled)
}

func (s *suite) tune(ctx context.Context, e entry, threads int, records, log string) error {
	tune := exec.CommandContext(ctx, s.tilth, "tune", e.path, "--threads", strconv.Itoa(threads), "--time", s.budget,
		"--records", records, "--log", log)
	tune.Stdout, tune.Stderr = os.Stdout, os.Stderr
	if err := tune.Run(); err != nil {
		return fmt.Errorf("tuning: %w", err)
	}
	return trialCost(log, os.Stdout)
}

// compare compares the packages of rows and fills in their measurements.
func (s *suite) compare(ctx context.Context, e entry, threads int, rows []result) error {
	c := &comparison{model: e.path, inputs: e.inputs, threads: threads, extents: s.extents, seconds: s.seconds, runs: s.runs, withOneDNN: !s.withoutOneDNN}
	for _, r := range rows {
		c.packages = append(c.packages, r.Compiled.Package)
	}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("comparing: %w", err)
	}
	for k := range rows {
		rows[k].measurement = c.measurements[k]
	}
	return nil
}
