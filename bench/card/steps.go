package main

import (
	"context"
	"fmt"
	"time"
)

// step is a part of the run.
type step struct {
	name string
	// takes is how long it is expected to take, at most.
	takes time.Duration
	run   func(ctx context.Context, b *bench, r *result) error
}

// steps are all, in the order in which they are done: what is needed to trust the others first.
func steps() []step {
	list := []step{
		{"machine", 20 * time.Second, machine},
		{"cases", 90 * time.Second, cases},
		{"memory checker", 40 * time.Second, memoryChecker},
	}
	for _, p := range products() {
		list = append(list, step{"product " + p.String(), p.takes(), func(ctx context.Context, b *bench, r *result) error { return b.product(ctx, p, r) }})
	}
	for _, m := range models() {
		list = append(list, step{"model " + m.String(), m.takes, func(ctx context.Context, b *bench, r *result) error { return b.model(ctx, m, r) }})
	}
	return list
}

// profiled is what 'tilth run --profile --json' says.
type profiled struct {
	Profile struct {
		Peak struct {
			FlopsPerSecond float64 `json:"flops_per_second"`
			BytesPerSecond float64 `json:"bytes_per_second"`
		} `json:"peak"`
		Calls []struct {
			Task    string  `json:"task"`
			Seconds float64 `json:"seconds"`
		} `json:"calls"`
	} `json:"profile"`
}

// machine measures the card's rates, by way of the smallest model's profile, and how long a package takes to be opened
// and to run once.
func machine(ctx context.Context, b *bench, r *result) error {
	model, pkg := b.path("mlp.onnx"), b.path("mlp.tar")
	if _, err := b.run(ctx, "model", "mlp", "-o", model); err != nil {
		return err
	}
	if _, err := b.run(ctx, "compile", model, "--target", "cuda", "--untuned", "-o", pkg); err != nil {
		return err
	}
	begin := time.Now()
	if _, err := b.run(ctx, "run", pkg); err != nil {
		return err
	}
	r.Values["load_and_run_once_s"] = time.Since(begin).Seconds()
	var p profiled
	if err := b.ask(ctx, &p, "run", pkg, "--profile"); err != nil {
		return err
	}
	r.Values["fma_tflops"], r.Values["copies_gbps"] = p.Profile.Peak.FlopsPerSecond/1e12, p.Profile.Peak.BytesPerSecond/1e9
	return nil
}

// caseStep is every how manyth conformance case is run.
const caseStep = 5

// cases runs conformance cases with default schedules.
func cases(ctx context.Context, b *bench, r *result) error {
	folders, err := every(b.cases, caseStep)
	if err != nil {
		return err
	}
	out, err := b.run(ctx, append(append([]string{"check"}, folders...), "--target", "cuda", "--json")...)
	counts, complaint := counted(out)
	for status, n := range counts {
		r.Values[status] = float64(n)
	}
	if complaint != "" {
		r.Notes["first failure"] = complaint
	}
	return err
}

// memoryChecker runs a package under the checkers of memory, races and barriers of NVIDIA's, where they are installed.
func memoryChecker(ctx context.Context, b *bench, r *result) error {
	checker := "compute-sanitizer"
	if _, err := command(ctx, checker, "--version"); err != nil {
		r.Notes["skipped"] = "compute-sanitizer is not installed"
		return nil
	}
	for _, tool := range []string{"memcheck", "racecheck", "synccheck"} {
		if _, err := command(ctx, checker, "--tool", tool, "--error-exitcode", "9", b.tilth, "run", b.path("mlp.tar")); err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
		r.Notes[tool] = "nothing found"
	}
	return nil
}
