package aot

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// contents reads a package's members.
func contents(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	members := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return members
		}
		if err != nil {
			t.Fatal(err)
		}
		if members[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// repack writes members as a tar archive, in the order of their names.
func repack(t *testing.T, members map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{objectName, headerName, weightsName, manifestName} {
		data, ok := members[name]
		if !ok {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoadRefusesBadPackages(t *testing.T) {
	_, path := compiled(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(change func(members map[string][]byte)) []byte {
		members := contents(t, path)
		change(members)
		return repack(t, members)
	}
	manifest := func(change func(m *Manifest)) []byte {
		return edit(func(members map[string][]byte) {
			m := &Manifest{}
			if err := json.Unmarshal(members[manifestName], m); err != nil {
				t.Fatal(err)
			}
			change(m)
			data, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			members[manifestName] = data
		})
	}
	without := func(name string) []byte { return edit(func(m map[string][]byte) { delete(m, name) }) }
	flip := func(name string) []byte { return edit(func(m map[string][]byte) { m[name][len(m[name])/2] ^= 4 }) }
	cases := map[string]struct {
		data []byte
		want string
	}{
		"empty":               {nil, "is not a package"},
		"text":                {[]byte(strings.Repeat("hello\n", 500)), "is not a package"},
		"cut short":           {whole[:len(whole)-8000], "cut short"},
		"cut in weights":      {whole[:len(whole)-12000], "cut short"},
		"no manifest":         {without(manifestName), "has no manifest.json"},
		"no object":           {without(objectName), "has no model.so"},
		"no weights":          {without(weightsName), "has no weights.bin"},
		"damaged object":      {flip(objectName), "model.so is damaged"},
		"damaged weights":     {flip(weightsName), "weights.bin is damaged"},
		"manifest no JSON":    {edit(func(m map[string][]byte) { m[manifestName] = []byte("{") }), "manifest.json is not valid"},
		"newer format":        {manifest(func(m *Manifest) { m.Format = Format + 1 }), "format is version 7, this program reads versions 2 to 6; compile"},
		"no target":           {manifest(func(m *Manifest) { m.Target = nil }), "names no target"},
		"bad target":          {manifest(func(m *Manifest) { m.Target.CPU.Threads = 0 }), "0 threads"},
		"other architecture":  {manifest(func(m *Manifest) { m.Target, _ = target.Parse("riscv64", 1) }), "compiled for riscv64, this machine is"},
		"unknown dtype":       {manifest(func(m *Manifest) { m.Inputs[0].DType = "f33" }), `unknown type "f33"`},
		"negative shape":      {manifest(func(m *Manifest) { m.Inputs[0].Shape[0] = -1 }), "negative extent"},
		"other shape":         {manifest(func(m *Manifest) { m.Outputs[0].Shape[0] = 7 }), "differ on the size"},
		"fewer calls":         {manifest(func(m *Manifest) { m.Calls = m.Calls[1:] }), "do not belong together"},
		"call of no task":     {manifest(func(m *Manifest) { m.Calls[0].Task = 99 }), "is of task 99 of 2"},
		"undescribed weights": {manifest(func(m *Manifest) { m.Members = m.Members[:1] }), "does not describe weights.bin"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "bad.tar")
			if err := os.WriteFile(bad, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(bad)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), bad) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.tar")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
}

func TestLoadRefusesProcessorsThatLackFeatures(t *testing.T) {
	_, path := compiled(t)
	machine, err := target.Native(0)
	if err != nil {
		t.Fatal(err)
	}
	older := machine.Clone()
	older.CPU.Features = slices.DeleteFunc(slices.Clone(machine.CPU.Features), func(f string) bool { return f == machine.CPU.Features[0] })
	_, err = Loader{Machine: older}.load(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "it needs "+machine.CPU.Features[0]+", which this processor lacks") {
		t.Errorf("got %v", err)
	}
}

// Packages were once loaded by the path of a file descriptor, which often repeats, so that later ones shared the
// first one's code.
func TestDifferentModelsAtATime(t *testing.T) {
	p, path := compiled(t)
	short := shorter(t)
	o := options(t, short)
	if _, err := Compile(t.Context(), short, o); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*array.Array{inputName(p): sample(1, rows, width)}
	for model, program := range map[*Model]*program.Program{opened(t, path): p, opened(t, o.Output): short} {
		want, err := evaluate.Program(program, inputs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := model.Run(inputs)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, got, want)
	}
}

func TestSeveralModelsAtATime(t *testing.T) {
	p, path := compiled(t)
	a, b := opened(t, path), opened(t, path)
	inputs := map[string]*array.Array{inputName(p): sample(1, rows, width)}
	first, err := a.Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(map[string]*array.Array{inputName(p): sample(2, rows, width)}); err != nil {
		t.Fatal(err)
	}
	compare(t, a.Outputs(), first)
}
