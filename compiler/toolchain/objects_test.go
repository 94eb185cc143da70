package toolchain

import (
	"os"
	"path/filepath"
	"testing"
)

// counting returns a compiler that notes each of its runs in a file.
func counting(t *testing.T, tc *Toolchain) (counted *Toolchain, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	script, log := filepath.Join(dir, "clang"), filepath.Join(dir, "log")
	text := "#!/bin/sh\ncase \"$*\" in *' -c '*) echo >>" + log + ";; esac\nexec " + tc.path + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Toolchain{Name: tc.Name, path: script, family: tc.family}, func() int {
		data, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return len(data)
	}
}

func TestUnchangedSourcesAreNotCompiledAgain(t *testing.T) {
	tc, machine := here(t)
	counted, runs := counting(t, tc)
	cache := filepath.Join(t.TempDir(), "objects")
	objects, err := OpenObjects(cache, 0)
	if err != nil {
		t.Fatal(err)
	}
	build := func(b Build, want int) {
		t.Helper()
		before := runs()
		b.Target, b.Form, b.Objects = machine, Library, objects
		out := filepath.Join(t.TempDir(), "out.so")
		if err := counted.Build(t.Context(), b, out); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(out); err != nil {
			t.Error(err)
		}
		if got := runs() - before; got != want {
			t.Errorf("%d runs of the compiler, want %d", got, want)
		}
	}
	header := []File{{"h.h", "int g(void);"}}
	one, two := File{"a.c", "#include \"h.h\"\nint f(void) { return g(); }"}, File{"b.c", "int g(void) { return 1; }"}
	build(Build{Headers: header, Sources: []File{one, two}}, 2)
	build(Build{Headers: header, Sources: []File{one, two}}, 0)
	build(Build{Headers: header, Sources: []File{one, {"b.c", "int g(void) { return 2; }"}}}, 1)
	build(Build{Headers: header, Sources: []File{{"renamed.c", one.Text}, two}}, 0)
	build(Build{Headers: []File{{"h.h", "int g(void); "}}, Sources: []File{one, two}}, 2)
	build(Build{Headers: header, Sources: []File{one, two}, Level: 1}, 2)
	damage(t, cache)
	build(Build{Headers: header, Sources: []File{one, two}}, 2)
	build(Build{Headers: header, Sources: []File{one, two}}, 0)
}

// damage changes a byte of each file in a folder.
func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing to damage: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFolderOfObjectsThatCannotBeWrittenCostsNoBuild(t *testing.T) {
	tc, machine := here(t)
	cache := filepath.Join(t.TempDir(), "objects")
	objects, err := OpenObjects(cache, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	b := Build{Target: machine, Form: Kernels, Sources: source(good), Objects: objects}
	if err := tc.Build(t.Context(), b, filepath.Join(t.TempDir(), "x.so")); err != nil {
		t.Fatal(err)
	}
}
