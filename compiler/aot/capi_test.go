package aot

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// unpacked returns a package's directory with the C program testdata/user.c compiled beside it.
func unpacked(t *testing.T, o Options) string { return unpackedFor(t, o, "user.c") }

// unpackedFor returns a package's directory with a C program of testdata compiled beside it as "user".
func unpackedFor(t *testing.T, o Options, program string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range contents(t, o.Output) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join("testdata", program))
	if err != nil {
		t.Fatal(err)
	}
	object, err := os.ReadFile(filepath.Join("testdata", "object.h"))
	if err != nil {
		t.Fatal(err)
	}
	buildOnce(t, o, toolchain.Build{Headers: []toolchain.File{cruntime.Interface(), {Name: "object.h", Text: string(object)}},
		Sources: []toolchain.File{{Name: "user.c", Text: string(text)}}}, filepath.Join(dir, "user"))
	return dir
}

// executables maps the targets and sources of programs to files of scratch.
var executables = map[string]string{}

// buildOnce links a program to a path. It compiles a program that no other test has used.
func buildOnce(t *testing.T, o Options, b toolchain.Build, path string) {
	t.Helper()
	b.Target, b.Form = o.Target, toolchain.Executable
	key := fmt.Sprint(o.Toolchain.Path(), string(o.Target.Encode()), b.Headers, b.Sources)
	if executables[key] == "" {
		file := filepath.Join(scratch, fmt.Sprint("executable", len(executables)))
		if err := o.Toolchain.Build(t.Context(), b, file); err != nil {
			t.Fatal(err)
		}
		executables[key] = file
	}
	if err := os.Symlink(executables[key], path); err != nil {
		t.Fatal(err)
	}
}

func TestPackageFromC(t *testing.T) {
	p := residual(t)
	input := sample(5, rows, width)
	want, err := evaluate.Program(p, map[string]*array.Array{inputName(p): input})
	if err != nil {
		t.Fatal(err)
	}
	arm, err := target.Parse("arm64", 2)
	if err != nil {
		t.Fatal(err)
	}
	here := options(t, p)
	there := here
	there.Target = arm
	cases := map[string]struct {
		options  Options
		emulator []string
	}{
		"this machine": {here, nil},
		"arm64":        {there, []string{"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.options.Output = filepath.Join(t.TempDir(), "model.tar")
			if _, err := Compile(t.Context(), p, c.options); err != nil {
				t.Fatal(err)
			}
			dir := unpacked(t, c.options)
			command := append(c.emulator, filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName), "0")
			compare(t, ran(t, p, command, input.Data), want)
		})
	}
}

// ran returns the outputs of a C program that runs a package on an input.
func ran(t *testing.T, p *program.Program, command []string, input []byte) map[string]*array.Array {
	t.Helper()
	out, err := run(t, command, input)
	if err != nil {
		t.Fatal(err)
	}
	return outputsOf(p, out)
}

// outputsOf reads the outputs that a program wrote one after another.
func outputsOf(p *program.Program, out []byte) map[string]*array.Array {
	got := map[string]*array.Array{}
	for _, v := range p.Outputs {
		n := valueBytes(p, v)
		got[p.Values[v].Name] = &array.Array{DType: p.Values[v].DType, Shape: p.Values[v].Shape, Data: out[:n]}
		out = out[n:]
	}
	return got
}

func run(t *testing.T, command []string, input []byte) ([]byte, error) {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Fatalf("%s is not installed: run scripts/packages.sh test", command[0])
	}
	cmd := exec.Command(command[0], command[1:]...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Logf("%s", stderr.String())
	}
	return out, err
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	object, err := Loader{}.loadObject(contents(t, o.Output)[objectName])
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		path   string
		offset int64
		want   string
	}{
		"missing":     {"/nowhere/weights.bin", 0, "opening /nowhere/weights.bin: No such file"},
		"too short":   {short, 0, "12288 bytes are needed at offset 0, the file has 100"},
		"not aligned": {o.Output, 3, "at offset 3"},
		"negative":    {o.Output, -64, "at offset -64"},
	}
	for name, c := range cases {
		if _, err := object.start(c.path, c.offset, Threads{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
