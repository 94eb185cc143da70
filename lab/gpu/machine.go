package gpu

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// untunedPackage compiles a built-in model with default schedules.
func (b *suite) untunedPackage(ctx context.Context, name, numerics string) (file string, err error) {
	model, file := b.path(name+".onnx"), b.path(name+".tar")
	if _, err := b.call(ctx, "model", name, "-o", model); err != nil {
		return "", err
	}
	_, err = b.call(ctx, "compile", model, "--target", "cuda", "--numerics", numerics, "--untuned", "-o", file)
	return file, err
}

const (
	machineStep = "machine"
	fmaRate     = "fma_tflops"
	copyRate    = "copies_gbps"
	matrixRate  = "matrices_%s_tflops"
)

// machine measures the card's peak rates by profiling the smallest model.
func machine(ctx context.Context, b *suite, r *result) error {
	pkg, err := b.untunedPackage(ctx, "mlp", "default")
	if err != nil {
		return err
	}
	var p profiled
	if err := b.ask(ctx, &p, "run", pkg, "--profile"); err != nil {
		return err
	}
	r.Values["load_s"], r.Values["first_s"] = p.Load, p.First
	peak := p.Profile.Peak
	r.Values[fmaRate], r.Values[copyRate] = peak.FlopsPerSecond/1e12, peak.BytesPerSecond/1e9
	for format, rate := range peak.Matrices {
		r.Values[fmt.Sprintf(matrixRate, strings.ReplaceAll(format, " ", "_"))] = rate / 1e12
	}
	r.Notes["peers"] = cmp.Or(b.versions(ctx), "none")
	return nil
}

const (
	sandboxStep = "sandbox"
	// probeTrials is the number of trials that test whether candidates can be measured.
	probeTrials = 4
)

// probeSandbox tunes the smallest model in the sandbox. If that only works without it, later steps run without: a
// driver may need what the sandbox forbids.
func probeSandbox(ctx context.Context, b *suite, r *result) error {
	if _, err := b.untunedPackage(ctx, "mlp", "default"); err != nil {
		return err
	}
	first := b.probe(ctx, b.sandbox)
	if r.Notes["mode"] = b.sandbox; first == nil {
		return nil
	}
	if err := b.probe(ctx, "off"); err != nil {
		return err
	}
	r.Notes["mode"], r.Notes["why"] = "off", first.Error()
	return nil
}

// probe tunes in a sandbox. It returns an error if no candidate can be measured.
func (b *suite) probe(ctx context.Context, sandbox string) error {
	s, err := b.tune(ctx, b.path("mlp.onnx"), b.path("probe.db"), sandbox, probeTrials, 20*time.Second, "--no-transfer")
	if err != nil {
		return err
	}
	failed, message := 0, "nothing was measured"
	for _, task := range s.Tasks {
		for class, n := range task.Errors {
			failed, message = failed+n, class+": "+task.Messages[class]
		}
	}
	if failed >= s.Trials {
		return fmt.Errorf("all %d candidates fail: %s", s.Trials, message)
	}
	return nil
}

// isolation returns the sandbox mode that works on this card.
func (b *suite) isolation() string {
	if r := b.ledger.last(sandboxStep, b.own); r != nil {
		return r.Notes["mode"]
	}
	return b.sandbox
}
