package main

import (
	"bytes"
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

	"github.com/tilth-dev/tilth/bench/results"
	"github.com/tilth-dev/tilth/compiler/model"
	"github.com/tilth-dev/tilth/compiler/target"
)

// suite tunes, compiles and compares models one after another.
type suite struct {
	comparison
	tilth   string
	dir     string
	threads []string
	// file is the name of the results' file.
	file string
	// kinds are the packages of each model, write what models are written with, and extents what packages are executed
	// with.
	kinds          []kind
	write, extents []string
	// budget is the tuning time of a model for each number of threads.
	budget  string
	again   bool
	folder  string
	under   []string
	version string
	machine string
	results *results.File[result]
}

// kind is a way in which models are compiled.
type kind struct {
	// schedules is its name in results; tuned ones are tuned for before.
	schedules string
	arguments []string
	tuned     bool
}

// entry is a model to compare.
type entry struct {
	name   string
	path   string // of the ONNX file
	inputs string // .npz; empty = made up
}

// runSuite goes through models: those named, or all built-in ones. What was compared before with the same version of
// the tree is left as it is.
func runSuite(ctx context.Context, args []string, w io.Writer) error {
	s := &suite{file: resultsName, kinds: []kind{{schedules: untunedSchedules, arguments: []string{"--untuned"}}, {schedules: tunedSchedules, tuned: true}}}
	names, err := s.parse("bench", args)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = model.Names()
	}
	return s.run(ctx, names, w)
}

// parse reads the flags of a suite, and returns the models that are named.
func (s *suite) parse(form string, args []string) (names []string, err error) {
	flags := flag.NewFlagSet(form, flag.ContinueOnError)
	s.addFlags(flags)
	flags.StringVar(&s.tilth, "tilth", "bin/tilth", "the program to compare")
	flags.StringVar(&s.dir, "dir", ".tools/bench", "folder for models, records and packages")
	flags.StringVar(&s.folder, "results", results.Folder, "folder that keeps the results of each kind of machine")
	flags.StringVar(&s.version, "version", "", "version of the tree; what was compared with it is not compared again")
	flags.StringVar(&s.budget, "time", "5m", "tuning time of a model for each number of threads")
	untuned := flags.Bool("untuned", false, "compare default schedules only")
	flags.BoolVar(&s.again, "again", false, "compare also what was compared before")
	threads := flags.String("threads", "1,2", "numbers of threads")
	under := flags.String("under", "", "command, with its arguments, to run each comparison under")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if s.threads, s.under = strings.Split(*threads, ","), strings.Fields(*under); *untuned {
		s.kinds = slices.DeleteFunc(s.kinds, func(k kind) bool { return k.tuned })
	}
	return flags.Args(), nil
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
	if s.results, err = results.Open[result](s.folder, s.machine, s.file); err != nil {
		return err
	}
	return s.all(ctx, entries, w)
}

func (s *suite) entries(names []string) (list []entry, err error) {
	for _, n := range names {
		path, inputs, _ := strings.Cut(n, ":")
		e := entry{name: strings.TrimSuffix(filepath.Base(path), ".onnx"), path: path, inputs: inputs}
		if !strings.HasSuffix(path, ".onnx") {
			e.path = filepath.Join(s.dir, strings.Join(append([]string{path}, s.write...), "")+".onnx")
			if err := model.Check(path, model.Options{}); err != nil {
				return nil, err
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// all goes on after a model that cannot be compared; the error names them all.
func (s *suite) all(ctx context.Context, entries []entry, w io.Writer) error {
	var failed error
	for _, e := range entries {
		for _, n := range s.threads {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := s.one(ctx, e, n, w); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s on %s threads: %w", e.name, n, err))
			}
		}
	}
	var out strings.Builder
	writerOf(s.file)(&out, s.machine, s.results.Rows)
	_, err := io.WriteString(w, out.String())
	return errors.Join(err, failed)
}

func (s *suite) one(ctx context.Context, e entry, threads string, w io.Writer) error {
	n, err := strconv.Atoi(threads)
	if err != nil {
		return fmt.Errorf("-threads: %w", err)
	}
	if !s.again && s.version != "" && have(s.results.Rows, e.name, n, s.version, s.kinds) {
		return nil
	}
	if _, err := os.Stat(e.path); err != nil {
		if _, err := s.ask(ctx, append([]string{"model", e.name, "-o", e.path}, s.write...)...); err != nil {
			return err
		}
	}
	var rows []result
	for _, k := range s.kinds {
		fmt.Fprintf(w, "%s, %s, %s\n", e.name, plural(n), k.schedules)
		r, err := s.compiled(ctx, e, n, k)
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

// compiled makes a package, with tuned schedules after tuning.
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
	answer, err := s.ask(ctx, arguments...)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(answer), &r.Compiled)
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

// compare runs the comparison in a process of its own and fills the rows.
func (s *suite) compare(ctx context.Context, e entry, threads string, rows []result) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := append(s.under, self, "compare", "-model", e.path, "-inputs", e.inputs, "-threads", threads,
		"-seconds", fmt.Sprint(s.seconds), "-runs", fmt.Sprint(s.runs), "-ort", s.ortDir, "-onednn", s.onednn, "-script", s.script)
	command = append(command, s.extents...)
	for _, r := range rows {
		command = append(command, r.Compiled.Package)
	}
	out, err := output(ctx, command)
	if err != nil {
		return fmt.Errorf("comparing: %w", err)
	}
	lines := json.NewDecoder(strings.NewReader(out))
	for k := range rows {
		if err := lines.Decode(&rows[k].measurement); err != nil {
			return fmt.Errorf("comparing: %w", err)
		}
	}
	return nil
}

// ask runs tilth and returns what it prints.
func (s *suite) ask(ctx context.Context, arguments ...string) (string, error) {
	return output(ctx, append([]string{s.tilth}, arguments...))
}

// output runs a command; the error has what it wrote to standard error.
func output(ctx context.Context, command []string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command[0], err, strings.TrimSpace(errors.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
