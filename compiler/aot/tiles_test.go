package aot

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// integers returns a model of one product of bytes, by known ones.
func integers(t *testing.T) *program.Program {
	t.Helper()
	w, err := expr.Parse("tilth-workload 1\ninput t0 u8[64,128]\nconstant t1 i8[128,64]\n" +
		"sum t2 i32[64,64] over 128 = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 r0 i1]))\noutput t2\n")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string, d array.DType, shape ...int64) program.Value {
		return program.Value{Name: name, DType: d, Shape: shape, Alias: -1}
	}
	p := &program.Program{Name: "integers", Values: []program.Value{
		value("x", array.Uint8, 64, 128), value("w", array.Int8, 128, 64), value("y", array.Int32, 64, 64),
	}}
	p.Values[1].Data = bytesOf(array.Int8, 128, 64)
	p.Inputs, p.Outputs = []int{0}, []int{2}
	p.Tasks = []program.Task{{Workload: w, Name: "product", Count: 1}}
	p.Calls = []program.Call{{Name: "product", Task: 0, Args: []int{0, 1, 2}}}
	return p
}

func bytesOf(d array.DType, shape ...int64) *array.Array {
	a := array.New(d, shape...)
	for i := range a.Len() {
		a.SetInt(i, (i*37)%251-100)
	}
	return a
}

// TestPackagesAskForTiles: a package with tile kernels computes the program's results where the kernel allows
// tiles, and elsewhere fails to open with an explanation.
func TestPackagesAskForTiles(t *testing.T) {
	p := integers(t)
	with := options(t, residual(t))
	o := Options{Parallel: 2, Objects: with.Objects, Output: with.Output}
	machine := with.Target.Clone()
	has := machine.CPU.Has("amx-int8")
	machine.CPU.Features = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(machine.CPU.Features), "amx-tile", "amx-int8"))))
	o.Target, o.Toolchain = machine, with.Toolchain
	space := cpu.Backend{}.Space(p.Tasks[0].Workload, machine, schedule.Strict)
	s, err := space.Apply(space.Default())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(s.Trace()), "tensorize") {
		t.Skip("vectors of this machine are shorter than rows of tiles")
	}
	o.Choices = []Choice{{Trace: s.Trace(), Origin: "default"}}
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	dir, input := unpacked(t, o), bytesOf(array.Uint8, 64, 128)
	cmd := exec.Command(filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName), "0")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input.Data), &stdout, &stderr
	switch err := cmd.Run(); {
	case !has && (err == nil || !strings.Contains(stderr.String(), "asking the kernel for the use of tiles: ")):
		t.Errorf("a machine without tiles opens the package: %v, %s", err, stderr.String())
	case has && err != nil:
		t.Errorf("%v: %s", err, stderr.String())
	case has:
		want, err := evaluate.Program(p, map[string]*array.Array{"x": input})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, outputsOf(p, stdout.Bytes()), want)
	}
}
