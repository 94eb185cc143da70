package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/bench/jsonlines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "card:", err)
		os.Exit(1)
	}
}

// options are what the command line asks for.
type options struct {
	// tilth is the program, python that with PyTorch; empty for none.
	tilth, python string
	// version is that of the tree.
	version string
	// out keeps results, work what is made on the way.
	out, work string
	// cases has ONNX's conformance cases.
	cases string
	// sandbox is the isolation of what is tuned.
	sandbox string
	limit   time.Duration
	only    []string
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("card", flag.ContinueOnError)
	flags.StringVar(&o.tilth, "tilth", "bin/tilth", "the program")
	flags.StringVar(&o.python, "python", "python3", "a Python that has PyTorch; '' compares with nothing")
	flags.StringVar(&o.version, "version", "unknown", "version of the tree; steps that it did are not done again")
	flags.StringVar(&o.out, "out", "bench/results/card", "folder that keeps results")
	flags.StringVar(&o.work, "work", ".tools/card", "folder of models, records and packages")
	flags.StringVar(&o.cases, "cases", "/usr/share/libonnx-testdata/data/node", "folder of ONNX's conformance cases")
	flags.StringVar(&o.sandbox, "sandbox", "best-effort", "isolation of candidates: required, best-effort or off")
	flags.DurationVar(&o.limit, "limit", 9*time.Minute, "begin no step that is not expected to end within this time")
	only := flags.String("only", "", "steps whose names begin so, separated by commas (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	o.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	return o, nil
}

// result is what came of a step.
type result struct {
	Step    string    `json:"step"`
	Version string    `json:"version"`
	Card    string    `json:"card"`
	At      time.Time `json:"at"`
	// TookSeconds is the step's own time.
	TookSeconds float64 `json:"took_seconds"`
	// Error is why the step failed; it is done again then.
	Error string `json:"error,omitempty"`
	// Values are its figures, by names that end in their units.
	Values map[string]float64 `json:"values,omitempty"`
	// Notes are what it says besides.
	Notes map[string]string `json:"notes,omitempty"`
}

// resultsName is the file of all results, a line each.
const resultsName = "results.jsonl"

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	for _, dir := range []string{o.out, o.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	path := filepath.Join(o.out, resultsName)
	earlier, err := jsonlines.Read[result](path)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(o.limit)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	b := &bench{options: o}
	defer b.close()
	if b.card, err = describeCard(ctx); err != nil {
		return err
	}
	var failed, left []string
	for _, s := range steps() {
		if !o.wants(s.name) || doneBy(earlier, s.name, o.version, b.card) {
			continue
		}
		if ctx.Err() != nil || time.Until(deadline) < s.takes {
			left = append(left, s.name)
			continue
		}
		r := b.do(ctx, s)
		if r.Error != "" {
			failed = append(failed, s.name)
		}
		fmt.Println(r)
		if err := jsonlines.Append(path, []result{r}); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		fmt.Printf("left for another run: %s\n", strings.Join(left, ", "))
	}
	if len(failed) > 0 {
		return fmt.Errorf("these steps failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// wants reports whether a step was asked for.
func (o options) wants(step string) bool {
	return len(o.only) == 0 || slices.ContainsFunc(o.only, func(p string) bool { return strings.HasPrefix(step, p) })
}

// doneBy reports whether a step was done by a version on a card.
func doneBy(earlier []result, step, version, card string) bool {
	return slices.ContainsFunc(earlier, func(r result) bool {
		return r.Step == step && r.Version == version && r.Card == card && r.Error == ""
	})
}

// do does a step.
func (b *bench) do(ctx context.Context, s step) result {
	r := result{Step: s.name, Version: b.version, Card: b.card, At: time.Now().UTC().Truncate(time.Second), Values: map[string]float64{}, Notes: map[string]string{}}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 3*s.takes)
	defer cancel()
	if err := s.run(ctx, b, &r); err != nil {
		r.Error = cmp.Or(err.Error(), "failed")
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.Error = "took too long: " + r.Error
		}
	}
	r.TookSeconds = time.Since(begin).Seconds()
	return r
}

// String is a result for people.
func (r result) String() string {
	var parts []string
	for _, name := range sorted(r.Values) {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, r.Values[name]))
	}
	for _, name := range sorted(r.Notes) {
		parts = append(parts, name+": "+r.Notes[name])
	}
	if r.Error != "" {
		parts = append(parts, "FAILED: "+r.Error)
	}
	return fmt.Sprintf("%s (%.0f s): %s", r.Step, r.TookSeconds, strings.Join(parts, ", "))
}
