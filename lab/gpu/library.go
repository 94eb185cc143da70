package gpu

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/lab/bench"
)

const (
	// libraryStep tunes with cuBLASLt as an additional candidate.
	libraryStep = "library"
	// libraryTrials and libraryTime bound each of the two searches.
	libraryTrials, libraryTime = 64, 40 * time.Second
)

// library tunes a network with and without the example of a cuBLASLt kernel, and times both packages in turns. The
// comparison is missing if the library is not installed.
func library(ctx context.Context, b *suite, r *result) error {
	model := b.path("library.onnx")
	if _, err := b.call(ctx, "model", "mlp", "--batch", "1024", "-o", model); err != nil {
		return err
	}
	_, err := b.call(ctx, "kernels", "check", b.kernels, "--model", model, "--target", "cuda")
	if err != nil && strings.Contains(err.Error(), "is not installed") {
		r.lacks("cuBLASLt", err)
		return nil
	}
	if err != nil {
		return err
	}
	packages := []contest{{"schedules", b.path("schedules.tar")}, {"library", b.path("library.tar")}}
	if err := b.tunedBy(ctx, model, packages[0], nil); err != nil {
		return err
	}
	if err := b.tunedBy(ctx, model, packages[1], []string{"--kernels", b.kernels}); err != nil {
		return err
	}
	shown, err := b.call(ctx, "package", "show", packages[1].file)
	if err != nil {
		return err
	}
	r.Values["own_kernels"] = float64(strings.Count(string(shown), "own kernel"))
	if err := b.inTurns(ctx, packages, nil, r); err != nil {
		return err
	}
	r.ratio("of_schedules", "schedules_s", "library_s")
	r.Values["relative_error"], err = b.differ(ctx, packages[1].file, packages[0].file)
	return err
}

// tunedBy tunes a model with its own records file, and compiles it.
func (b *suite) tunedBy(ctx context.Context, model string, p contest, kernels []string) error {
	records := b.path(p.name + ".db")
	if err := os.RemoveAll(records); err != nil {
		return err
	}
	if _, err := b.tune(ctx, model, records, b.isolation(), libraryTrials, libraryTime, append(kernels, "--no-transfer")...); err != nil {
		return err
	}
	compiling := []string{"compile", model, "--target", "cuda", "--records", records, "-o", p.file}
	_, err := b.call(ctx, slices.Concat(compiling, kernels)...)
	return err
}

// differ returns the largest difference between the outputs of two packages on the same inputs.
func (b *suite) differ(ctx context.Context, got, want string) (float64, error) {
	var outputs [2]map[string]*array.Array
	path := b.path("outputs.npz")
	for i, file := range []string{got, want} {
		if _, err := b.call(ctx, "run", file, "--outputs", path); err != nil {
			return 0, err
		}
		var err error
		if outputs[i], err = npz.ReadFile(path); err != nil {
			return 0, err
		}
	}
	return bench.WorstError(outputs[0], outputs[1]), nil
}
