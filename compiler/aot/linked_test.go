package aot

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// shorter returns the residual model without its last layer.
func shorter(t *testing.T) *program.Program {
	p := residual(t)
	p.Calls, p.Outputs = p.Calls[:3], []int{5}
	return p
}

// extracted returns the folder that tar makes of a package with a prefix.
func extracted(t *testing.T, p *program.Program, o Options) string {
	t.Helper()
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", o.Output, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// linkedWith compiles testdata/linked.c and links it as a user would, with the same compiler.
func linkedWith(t *testing.T, o Options, dirs []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "linked")
	args := []string{"-Wall", "-Werror", filepath.Join("testdata", "linked.c"), "-o", file}
	for k, prefix := range []string{"first", "second"} {
		args = append(args, "-I"+dirs[k], "-L"+dirs[k], "-l"+prefix, "-Wl,-rpath,"+dirs[k])
	}
	if out, err := exec.Command(o.Toolchain.Path(), append(args, "-ldl")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// TestTwoPackagesInAProgram: each calls its own functions and kernels, whether both are linked or loaded globally.
func TestTwoPackagesInAProgram(t *testing.T) {
	programs := []*program.Program{residual(t), shorter(t)}
	o := options(t, programs[0])
	var dirs []string
	for k, prefix := range []string{"first", "second"} {
		o.Prefix, o.Output = prefix, filepath.Join(t.TempDir(), "model.tar")
		dirs = append(dirs, extracted(t, programs[k], o))
	}
	file := linkedWith(t, o, dirs)
	inputs := []*array.Array{sample(7, rows, width), sample(8, rows, width)}
	weights := []string{filepath.Join(dirs[0], weightsName), filepath.Join(dirs[1], weightsName)}
	objects := []string{filepath.Join(dirs[0], objectName), filepath.Join(dirs[1], objectName)}
	for name, args := range map[string][]string{"linked": weights, "loaded": slices.Concat(weights, objects)} {
		out, err := run(t, append([]string{file}, args...), append(slices.Clone(inputs[0].Data), inputs[1].Data...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for k, p := range programs {
			want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): inputs[k]})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, outputsOf(p, out), want)
			for _, v := range p.Outputs {
				out = out[valueBytes(p, v):]
			}
		}
	}
}

func TestPackageFromCPlusPlus(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	dir := extracted(t, p, o)
	file, input := filepath.Join(dir, "user"), sample(5, rows, width)
	want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): input})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-I" + filepath.Join("..", "..", "examples", "c"), "-I" + dir,
		filepath.Join("testdata", "model.cc"), "-x", "none", filepath.Join(dir, objectName), "-Wl,-rpath," + dir, "-lstdc++", "-o", file}
	if out, err := exec.Command(o.Toolchain.Path(), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	compare(t, ran(t, p, []string{file, filepath.Join(dir, weightsName)}, input.Data), want)
}

// TestExampleBuildsWithCMake, and runs.
func TestExampleBuildsWithCMake(t *testing.T) {
	if _, err := exec.LookPath("cmake"); err != nil {
		t.Fatal("cmake is not installed: run scripts/packages.sh test")
	}
	build := filepath.Join(t.TempDir(), "build")
	args := []string{"-S", filepath.Join("..", "..", "examples", "c"), "-B", build}
	for prefix, p := range map[string]*program.Program{"first": residual(t), "second": shorter(t)} {
		o := options(t, p)
		o.Prefix = prefix
		if _, err := Compile(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		args = append(args, fmt.Sprintf("-D%s=%s", strings.ToUpper(prefix), o.Output))
	}
	for _, command := range [][]string{append([]string{"cmake"}, args...), {"cmake", "--build", build}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	out, err := exec.Command(filepath.Join(build, "both")).CombinedOutput()
	if want := "y: 0, ...\n"; err != nil || strings.Count(string(out), want) != 2 {
		t.Errorf("got %q, %v; want %q twice", out, err, want)
	}
}

// TestPackageExportsItsInterfaceAlone, under the name that programs ask the dynamic linker for.
func TestPackageExportsItsInterfaceAlone(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	for prefix, soname := range map[string]string{"": "", "resnet_18": "libresnet_18.so"} {
		o.Prefix = prefix
		manifest, err := Compile(t.Context(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		if manifest.Prefix != prefix {
			t.Errorf("the manifest has prefix %q, want %q", manifest.Prefix, prefix)
		}
		members := contents(t, o.Output)
		checkExports(t, members[objectName], string(members[headerName]), prefix, soname)
		if header, has := members["resnet_18.h"]; has != (prefix != "") || has && !strings.Contains(string(header), "resnet_18_api(void)") {
			t.Errorf("prefix %q: header %q", prefix, header)
		}
		if model := opened(t, o.Output); model.Threads() != o.Target.Threads() {
			t.Errorf("runs on %d threads, was compiled for %d", model.Threads(), o.Target.Threads())
		}
	}
}

// checkExports compares what an object exports with its header.
func checkExports(t *testing.T, object []byte, header, prefix, soname string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), objectName)
	if err := os.WriteFile(path, object, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names, err := f.DynString(elf.DT_SONAME)
	if err != nil || strings.Join(names, " ") != soname {
		t.Errorf("SONAME is %q, %v; want %q", names, err, soname)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			exported[s.Name] = true
		}
	}
	if prefix != "" && !exported[prefix+"_api"] {
		t.Errorf("%s_api is not exported", prefix)
	}
	delete(exported, prefix+"_api")
	for name := range exported {
		if !strings.HasPrefix(name, "tilth_") || !strings.Contains(header, name+"(") {
			t.Errorf("%s is exported, and no function of the interface", name)
		}
	}
	for _, name := range []string{"tilth_open", "tilth_open_with", "tilth_api", "tilth_run", "tilth_close", "tilth_lock", "tilth_decode"} {
		if !exported[name] {
			t.Errorf("%s is not exported", name)
		}
	}
}

func TestPrefixesAreNamesInC(t *testing.T) {
	for _, prefix := range []string{"", "a", "ResNet_18", strings.Repeat("x", 64)} {
		if err := CheckPrefix(prefix); err != nil {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	p := residual(t)
	for _, prefix := range []string{"_a", "1a", "a-b", "a b", "../a", "é", "tilth", strings.Repeat("x", 65)} {
		o := options(t, p)
		o.Prefix = prefix
		_, err := Compile(t.Context(), p, o)
		if err == nil || !strings.Contains(err.Error(), ": prefix ") {
			t.Errorf("%q: %v", prefix, err)
		}
		if _, err := os.Stat(o.Output); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: a package was left: %v", prefix, err)
		}
	}
}
