package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/npz"
)

// checked compiles models on a simulated GPU and measures their errors.
type checked struct {
	farmUnderTest
	ctx           context.Context
	model, inputs string
}

func newChecked(t *testing.T) *checked {
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	t.Cleanup(cancel)
	c := &checked{farmUnderTest: farmUnderTest{t: t, dir: t.TempDir()}, ctx: ctx}
	c.model, c.inputs = filepath.Join(c.dir, "mlp.onnx"), filepath.Join(c.dir, "in.npz")
	c.tilth(ctx, "model", "mlp", "-o", c.model).mustRun()
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]float32, 784)
	for i := range data {
		data[i] = rng.Float32()
	}
	c.write("data", array.FromFloat32(data, 1, 784))
	return c
}

// write writes an input of a name.
func (c *checked) write(name string, a *array.Array) {
	f, err := os.Create(c.inputs)
	if err == nil {
		err = errors.Join(npz.Write(f, map[string]*array.Array{name: a}), f.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// compile compiles the model with additional flags.
func (c *checked) compile(flags ...string) (p *process, output string) {
	output = filepath.Join(c.dir, "mlp.tar")
	all := []string{"compile", c.model, "--target", "gpu-sim", "--threads", "1", "--untuned", "-o", output, "--check", c.inputs}
	return c.tilth(c.ctx, append(all, flags...)...), output
}

// refused checks that a compilation fails and returns the line with the reason.
func (c *checked) refused(flags ...string) string {
	c.t.Helper()
	p, output := c.compile(flags...)
	p.start()
	if err := p.cmd.Wait(); err == nil {
		c.t.Errorf("%v compiles", flags)
	}
	if _, err := os.Stat(output); !errors.Is(err, fs.ErrNotExist) {
		c.t.Errorf("%v leaves a package: %v", flags, err)
	}
	said := p.stderr.String()
	if strings.Count(said, "\n") != 1 {
		c.t.Errorf("%v says more than one line:\n%s", flags, said)
	}
	return said
}

// TestErrorOfAPackageIsMeasured checks that the error is printed and stored. Fast numerics lose as many digits of
// float32 as bfloat16 or float16 lack, and strict numerics lose none. The same holds on processors.
func TestErrorOfAPackageIsMeasured(t *testing.T) {
	c := newChecked(t)
	for _, x := range []struct {
		numerics string
		flags    []string
		within   [2]float64
	}{
		{"fast", nil, [2]float64{0x1p-13, 0x1p-5}}, {"strict", nil, [2]float64{0, 1e-5}},
		{"fast", []string{"--target", "x86-64-v3"}, [2]float64{0x1p-13, 0x1p-5}},
		{"fast", []string{"--target", "x86-64-v3", "--storage", "float16"}, [2]float64{0x1p-16, 0x1p-8}},
		{"strict", []string{"--target", "x86-64-v3", "--weights", "int8"}, [2]float64{0x1p-13, 0x1p-5}},
	} {
		if testing.Short() && x.flags != nil {
			continue // slow: also compiles for a processor
		}
		numerics, within := x.numerics, x.within
		p, output := c.compile(append(x.flags, "--numerics", numerics, "--max-error", "0.05", "--json")...)
		p.mustRun()
		var result compileResult
		if err := json.Unmarshal(p.stdout.Bytes(), &result); err != nil || result.Accuracy == nil {
			t.Fatalf("%v: %s", err, p.stdout.String())
		}
		name, worst := result.Accuracy.Worst()
		if name != "out" || worst < within[0] || worst > within[1] || result.Accuracy.Numerics != numerics {
			t.Errorf("%s: output %q is off by %g, want %v", numerics, name, worst, within)
		}
		manifest, err := aot.ReadManifest(output)
		if err != nil || !reflect.DeepEqual(manifest.Accuracy, result.Accuracy) {
			t.Errorf("the package says %+v, %v, and was measured to have %+v", manifest.Accuracy, err, result.Accuracy)
		}
		c.tilth(c.ctx, "run", output, "--inputs", c.inputs).mustRun()
	}
	p, _ := c.compile("--numerics", "fast")
	p.mustRun()
	if said := p.stdout.String(); !strings.Contains(said, `of the largest value of output "out", against strict numerics`) {
		t.Errorf("it prints\n%s", said)
	}
}

func TestPackageWithTooLargeAnErrorIsRefused(t *testing.T) {
	c := newChecked(t)
	said := c.refused("--numerics", "fast", "--max-error", "1e-6")
	for _, part := range []string{`output "out" differs from that of strict numerics by `, "--max-error allows 1e-06", "--numerics"} {
		if !strings.Contains(said, part) {
			t.Errorf("it says %s where %q is due", said, part)
		}
	}
	if said := c.refused("--max-error", "0"); !strings.Contains(said, "--max-error 0: want a positive number") {
		t.Errorf("with no error allowed it says %s", said)
	}
	if said := c.refused("--target", "sm_90a"); !strings.Contains(said, "--check runs the package") {
		t.Errorf("without the device it says %s", said)
	}
	c.write("dat", array.New(array.Float32, 1, 784))
	if said := c.refused("--numerics", "fast"); !strings.Contains(said, `no input "dat"`) {
		t.Errorf("with other inputs it says %s", said)
	}
	if err := os.WriteFile(c.inputs, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := c.refused(); !strings.Contains(said, "--check") {
		t.Errorf("with no archive it says %s", said)
	}
}
