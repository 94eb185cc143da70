package aot

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// compiledFor returns a package of the residual model for a number of threads of this machine.
func compiledFor(t *testing.T, threads int) (Options, map[string]*array.Array) {
	t.Helper()
	p := residual(t)
	o := options(t, p)
	o.Target = o.Target.Clone()
	o.Target.CPU.Threads = threads // more than there are processors are fine
	if _, err := Compile(t.Context(), p, o); err != nil {
		t.Fatal(err)
	}
	return o, map[string]*array.Array{inputName(p): sample(3, rows, width)}
}

// TestFewerThreadsComputeTheSame compares bitwise, on any processors.
func TestFewerThreadsComputeTheSame(t *testing.T) {
	o, inputs := compiledFor(t, 4)
	var first map[string]*array.Array
	for _, c := range []struct {
		threads Threads
		want    int
	}{
		{Threads{}, 4}, {Threads{Count: 1}, 1}, {Threads{Count: 2}, 2}, {Threads{Count: 3}, 3}, {Threads{Count: 400}, 4},
		{Threads{CPUs: cpus(t, 1)}, 1}, {Threads{Count: 3, CPUs: cpus(t, 1)}, 3}, {Threads{CPUs: cpus(t, 2)}, len(cpus(t, 2))},
	} {
		m, err := Loader{Machine: o.Target, Threads: c.threads}.Load(o.Output)
		if err != nil {
			t.Fatal(err)
		}
		if m.Threads() != c.want {
			t.Errorf("%+v: %d threads, want %d", c.threads, m.Threads(), c.want)
		}
		for range 3 {
			got, err := m.Run(inputs)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			for name, a := range got {
				if string(a.Data) != string(first[name].Data) {
					t.Errorf("%+v: output %q differs", c.threads, name)
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPackageRunsOnTheCoresOfItsClass checks the default affinity and an explicit one.
func TestPackageRunsOnTheCoresOfItsClass(t *testing.T) {
	o, _ := compiledFor(t, 2)
	all := cpus(t, 1)
	other := o.Target.Clone()
	other.CPU.Model = "another"
	classes := []target.Class{{Target: other, CPUs: []int{1022}}, {Target: o.Target, CPUs: append(slices.Clone(all), 1023)}}
	_, err := Loader{Machine: o.Target, Classes: classes}.Load(o.Output)
	if err == nil || !strings.Contains(err.Error(), "processor 1023: this thread may not run there") {
		t.Errorf("on cores of its class, of which one is not there: %v", err)
	}
	for _, l := range []Loader{{Classes: classes, Threads: Threads{Count: 2}}, {Classes: classes, Threads: Threads{CPUs: all}}, {Classes: classes[:1]}, {}} {
		l.Machine = o.Target
		if len(l.Classes) == 1 { // a machine of equal cores
			l.Classes = []target.Class{{Target: other}}
		}
		m, err := l.Load(o.Output)
		if err != nil {
			t.Fatalf("%+v: %v", l.Threads, err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// cpus returns the first n processors that this process may use.
func cpus(t *testing.T, n int) (list []int) {
	t.Helper()
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; len(list) < min(n, allowed.Count()); cpu++ {
		if allowed.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

func TestOptionsFromC(t *testing.T) {
	o, _ := compiledFor(t, 4)
	dir := unpackedFor(t, o, "options.c")
	out, err := run(t, []string{filepath.Join(dir, "user"), filepath.Join(dir, objectName), filepath.Join(dir, weightsName)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"none: 4", "defaults: 4", "one: 1", "many: 4",
		"negative: -2 threads: want at least 1, or 0 for as many as the model was compiled for",
		"one processor: 1", "one processor for all: 3", "confined: 2, the caller is not",
		"no such processor: processor -1: want numbers from 0 to 1023", "nor this: processor 1000000: want numbers from 0 to 1023",
		"no list: n_cpus is 1: want the length of the list cpus",
		"no size: options of 0 bytes: size must be sizeof(struct tilth_options)",
		"older: 2", "later, unset: 2",
		"later, set: the options have some that this package does not know: compile the model again", "",
	}, "\n")
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// TestPackagesOfOlderVersionsLoad uses a package from before models could be opened with options.
func TestPackagesOfOlderVersionsLoad(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the package is for x86-64")
	}
	path := unzipped(t, filepath.Join("testdata", "older.tar.gz"))
	p := residual(t)
	inputs := map[string]*array.Array{inputName(p): sample(5, rows, width)}
	want, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	m := opened(t, path)
	got, err := m.Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, got, want)
	if m.Threads() != 2 {
		t.Errorf("%d threads, want 2", m.Threads())
	}
	machine, err := target.Native(0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Loader{Machine: machine, Threads: Threads{Count: 1}}.Load(path)
	if err == nil || !strings.Contains(err.Error(), "compile the model again") {
		t.Errorf("threads were chosen: %v", err)
	}
}

// unzipped returns a file, unpacked.
func unzipped(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.tar")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
