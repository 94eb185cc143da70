package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/sandbox"
)

func here(t testing.TB) (*Toolchain, *target.Target) {
	t.Helper()
	tc, err := Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	return tc, machine
}

func source(text string) []File { return []File{{Name: "kernel.c", Text: text}} }

const good = `void add(float *a, const float *b, long n) { for (long i = 0; i < n; i++) a[i] += b[i]; }`

func TestBuildMakesWhatIsAsked(t *testing.T) {
	tc, machine := here(t)
	arm, err := target.Parse("arm64", 1)
	if err != nil {
		t.Fatal(err)
	}
	libm := `float expf(float); float f(float x) { return expf(x); }`
	cases := map[string]Build{
		"kernels":             {Target: machine, Form: Kernels, Sources: source(good)},
		"kernels with libm":   {Target: machine, Form: Kernels, Sources: source(libm)},
		"kernels with libgcc": {Target: machine, Form: Kernels, Sources: source(`__int128 f(__int128 a, __int128 b) { return a / b; }`)},
		"library":             {Target: machine, Form: Library, Sources: source(libm)},
		"executable":          {Target: machine, Form: Executable, Sources: source(`int main(void) { return 0; }`)},
		"arm64 kernels":       {Target: arm, Form: Kernels, Sources: source(good)},
		"arm64 libm":          {Target: arm, Form: Kernels, Sources: source(libm)},
		"arm64 executable":    {Target: arm, Form: Executable, Sources: source(`int main(void) { return 0; }`)},
		"two sources and a header": {Target: machine, Form: Library, Parallel: 2, Headers: []File{{"h.h", "int g(void);"}},
			Sources: []File{{"a.c", "#include \"h.h\"\nint f(void) { return g(); }"}, {"b.c", "#include \"h.h\"\nint g(void) { return 1; }"}}},
	}
	for name, b := range cases {
		t.Run(name, func(t *testing.T) {
			dir, last := t.TempDir(), 0
			b.Progress = func(compiled, all int) {
				if last++; compiled != last || all != len(b.Sources) {
					t.Errorf("%d of %d sources are said to be compiled after %d", compiled, all, last)
				}
			}
			if err := tc.Build(t.Context(), b, filepath.Join(dir, "out")); err != nil || last != len(b.Sources) {
				t.Fatal(last, err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

// slow takes the compiler long.
const slow = "#define A(x) x x x x x x x x x x\n#define B A(A(A(A(A(A(A(A(x++;))))))))\nint f(int x) { B return x; }"

func TestBuildErrorsAreAttributed(t *testing.T) {
	tc, machine := here(t)
	unloaded := *tc
	unloaded.servers = nil
	t.Run("loaded for each run", func(t *testing.T) { tellWhoseFault(t, &unloaded, machine) })
	tc = loaded(t, tc, machine)
	t.Run("in memory", func(t *testing.T) { tellWhoseFault(t, tc, machine) })
}

func tellWhoseFault(t *testing.T, tc *Toolchain, machine *target.Target) {
	deep := "int x = " + strings.Repeat("sizeof(int[", 1<<20)
	cases := map[string]struct {
		text   string
		limits Limits
		kind   Kind
		want   string
	}{
		"syntax error":   {"int f( {", Limits{}, Rejected, "error:"},
		"unknown symbol": {"int g(void); int f(void) { return g(); }", Limits{}, Rejected, "g"},
		// Of processor time, or of wall-clock time on a machine that provides less than a tenth of a processor.
		"time limit":   {slow, Limits{Time: time.Second}, Limit, "took "},
		"memory limit": {slow, Limits{MemoryBytes: 640 << 20}, Limit, "memory limit 640 MiB"},
		"deep nesting": {deep, Limits{}, Rejected, "error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.so")
			err := tc.Build(t.Context(), Build{Target: machine, Form: Kernels, Sources: source(c.text), Limits: c.limits}, out)
			checkError(t, err, c.kind, c.want)
			if _, err := os.Stat(out); err == nil {
				t.Error("a failed build left its output")
			}
		})
	}
}

func checkError(t *testing.T, err error, kind Kind, want string) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v", err)
	}
	if failure.Kind != kind || !strings.Contains(failure.Error(), want) || strings.Contains(failure.Error(), "\n") {
		t.Errorf("kind %d, %q; want kind %d, %q", failure.Kind, failure, kind, want)
	}
}

func TestMissingCompilerIsInfra(t *testing.T) {
	_, err := Find(t.Context(), "/nowhere/cc")
	checkError(t, err, Infra, "set TILTH_CC")
	t.Setenv("PATH", t.TempDir())
	_, err = Find(t.Context(), "")
	checkError(t, err, Infra, "no C compiler on PATH")
	machine := mustNative(t)
	gone := &Toolchain{Name: "clang-1.2.3", path: "/nowhere/clang", family: "clang"}
	err = gone.Build(t.Context(), Build{Target: machine, Form: Kernels, Sources: source(good)}, filepath.Join(t.TempDir(), "x.so"))
	checkError(t, err, Infra, "cannot run /nowhere/clang")
}

func mustNative(t *testing.T) *target.Target {
	t.Helper()
	machine, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func TestCancelledBuildIsInfra(t *testing.T) {
	tc, machine := here(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("lease lost"))
	err := tc.Build(ctx, Build{Target: machine, Form: Kernels, Sources: source(good)}, filepath.Join(t.TempDir(), "x.so"))
	checkError(t, err, Infra, "lease lost")
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64-pc-linux-gnu": "clang-19.1.7",
		"Ubuntu clang version 14.0.0-1ubuntu1.1\n":                             "clang-14.0.0",
		"gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright":                     "gcc-12.2.0",
		"hello 1.2.3": "-",
	} {
		family, version, err := parseVersion(text)
		if family+"-"+version != want {
			t.Errorf("%q: got %s-%s, %v", text, family, version, err)
		}
	}
}

func TestNewestClang(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"clang-9", "clang-19", "clang-format-20", "clang-14"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "clang-21"), nil, 0o600); err != nil { // not executable
		t.Fatal(err)
	}
	if got := newestClang([]string{dir}); filepath.Base(got) != "clang-19" {
		t.Errorf("got %s", got)
	}
}

func TestSelfContainedKernelsNeedNoLibrary(t *testing.T) {
	tc, machine := here(t)
	dir := t.TempDir()
	for text, want := range map[string]needs{
		good: needsNothing,
		`void *memcpy(void *, const void *, unsigned long); void f(void *a, void *b, long n) { memcpy(a, b, n); }`: needsNothing,
		`float expf(float); float f(float x) { return expf(x); }`:                                                  needsLibraries,
	} {
		b := Build{Target: machine, Sources: source(text)}
		if err := os.WriteFile(filepath.Join(dir, "kernel.c"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		objects, err := tc.compileAll(t.Context(), b, dir)
		if err != nil || !slices.Equal(objects, []string{"kernel.o"}) {
			t.Fatal(objects, err)
		}
		if got := needsOf(dir, objects); got != want {
			t.Errorf("%s: needs %d, want %d", text, got, want)
		}
	}
}

func BenchmarkKernels(b *testing.B) {
	tc, machine := here(b)
	unloaded := *tc
	unloaded.servers = nil
	for name, tc := range map[string]*Toolchain{"loaded for each run": &unloaded, "in memory": loaded(b, tc, machine)} {
		b.Run(name, func(b *testing.B) {
			out := filepath.Join(b.TempDir(), "k.so")
			for b.Loop() {
				if err := tc.Build(b.Context(), Build{Target: machine, Form: Kernels, Sources: source(good)}, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestMessagesAreInEnglish(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	script := filepath.Join(t.TempDir(), "cc")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"error: $LC_ALL\" >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := Limits{}.run(t.Context(), "compiling", program{dir: t.TempDir(), path: script})
	if err == nil || !strings.Contains(err.Error(), "error: C") {
		t.Errorf("got %v", err)
	}
}

func TestFullDiskIsAnInfraError(t *testing.T) {
	for range 20 {
		if kind := kindOf("cannot allocate room for x.o: No space left on device"); kind != Infra {
			t.Fatalf("got kind %d", kind)
		}
	}
}

// TestKilledCompilerIsNotTheSourcesFault: a compiler killed for lack of memory was once attributed to the
// candidate.
func TestKilledCompilerIsNotTheSourcesFault(t *testing.T) {
	for name, script := range map[string]string{
		"itself":              "kill -9 $$",
		"a part of gcc":       "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1",
		"a linker from clang": "echo 'clang: error: unable to execute command: Killed' >&2; exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			err := Limits{}.run(t.Context(), "compiling", program{dir: t.TempDir(), path: "/bin/sh", args: []string{"-c", script}})
			checkError(t, err, Infra, "out of memory: run fewer compilers at once")
		})
	}
}

func TestCompilersInASandboxHaveNoNetworkAndDoTheirWork(t *testing.T) {
	box, err := sandbox.Open(sandbox.BestEffort, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	tc, machine := here(t)
	tc = tc.In(box)
	if err := tc.Build(t.Context(), Build{Target: machine, Form: Kernels, Sources: source(good)}, filepath.Join(t.TempDir(), "k.so")); err != nil {
		t.Error(err)
	}
	const look = "cat /proc/self/net/dev | tail -n +3 | grep -v lo: && exit 1; exit 0"
	err = Limits{}.run(t.Context(), "compiling", program{dir: t.TempDir(), path: "/bin/sh", args: []string{"-c", look}, box: tc.box})
	if len(tc.box.States()) != 4 {
		t.Errorf("layers %v", tc.box.States())
	}
	if slices.ContainsFunc(tc.box.States(), func(s sandbox.State) bool { return s.Layer == sandbox.Network && s.How == "" }) {
		t.Skip("this kernel has no layer network")
	}
	if err != nil {
		t.Errorf("a compiler sees a network: %v", err)
	}
}

func TestGCCIsRefusedForRegistersOfSVE(t *testing.T) {
	for name, refused := range map[string]bool{"neoverse-v1": true, "arm64": false} {
		on, err := target.Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = (&Toolchain{Name: "gcc-12.2.0", path: "gcc", family: "gcc"}).compiler(on)
		if (err != nil && strings.Contains(err.Error(), "gcc-12.2.0 is not used for SVE registers")) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
