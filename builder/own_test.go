package builder

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/runner"
)

// written returns candidates of a user kernel for a workload, with the values 1 to n of its knob.
func written(t *testing.T, w *expr.Workload, arch, name, source string, n int64) (list []Candidate) {
	t.Helper()
	return calling(t, w, arch, name, source, "", n)
}

// calling returns candidates of a user kernel that links libraries.
func calling(t *testing.T, w *expr.Workload, arch, name, source, libraries string, n int64) (list []Candidate) {
	t.Helper()
	lines := `"` + strings.ReplaceAll(strings.TrimSuffix(w.Text(), "\n"), "\n", `","`) + `"`
	k, err := userkernel.Parse(fmt.Appendf(nil, `{"name":%q,"arch":%q,"numerics":"strict","workloads":[{"text":[%s]}],`+
		`"knobs":[{"name":"A","values":[1,2,3]}],%s"source":%q}`, name, arch, lines, libraries, source))
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v <= n; v++ {
		c, err := k.At(w, []int64{v})
		if err != nil {
			t.Fatal(err)
		}
		s := schedule.New(w)
		if err := s.UseOwn(c); err != nil {
			t.Fatal(err)
		}
		list = append(list, Candidate{schedule.Digest(s.Trace()), s.Trace()})
	}
	return list
}

// TestUserKernelsInitialiseApart checks that the initialisation code of a user kernel's module does not run in the
// process of schedules or other kernels.
func TestUserKernelsInitialiseApart(t *testing.T) {
	c, w, machine := newCompiler(t, ""), product(t), native(t)
	c.OwnKernels, c.Parallel = true, 1
	const empty = "void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {}"
	const crash = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }\n" + empty
	schedules := tiled(t, w, 2, 4)
	bad, wrong := written(t, w, machine.Arch(), "bad", crash, 2), written(t, w, machine.Arch(), "wrong", empty, 1)
	built, err := c.Build(t.Context(), t.TempDir(), Batch{Workload: w, Target: machine,
		Candidates: slices.Concat(schedules[:1], bad[:1], wrong, schedules[1:], bad[1:])})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range built.Outcomes {
		ids = append(ids, o.Candidate)
		if o.Error != none {
			t.Fatalf("%s: %v %s", o.Candidate, o.Error, o.Message)
		}
	}
	if len(built.Objects) != 3 {
		t.Errorf("%d objects of schedules and two kernels", len(built.Objects))
	}
	verdicts := map[string]runner.Outcome{}
	plan := runner.Plan{Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects, Kernels: ids, Threads: 2}
	if err := runner.Measure(t.Context(), plan, func(o runner.Outcome) { verdicts[o.Kernel] = o }); err != nil {
		t.Fatal(err)
	}
	for _, s := range schedules {
		if o := verdicts[s.Digest]; o.Error != none || o.Kernel == "" {
			t.Errorf("a schedule: %v %s", o.Error, o.Message)
		}
	}
	for _, k := range slices.Concat(bad, wrong) {
		if o := verdicts[k.Digest]; o.Error == none || o.Kernel == "" {
			t.Errorf("a bad kernel: %+v", o)
		}
	}
}

// TestKernelIsMeasuredOnlyWithItsLibrary uses zlib, which compilers link themselves. A missing library only
// fails the kernel.
func TestKernelIsMeasuredOnlyWithItsLibrary(t *testing.T) {
	c, w, machine := newCompiler(t, ""), product(t), native(t)
	c.OwnKernels, c.Parallel = true, 1
	const right = `extern const char *zlibVersion(void);
void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {
  const float *a = args[0], *b = args[1];
  float *out = args[2];
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 48; j++) {
      float sum = 0;
      for (int k = 0; k < 64; k++) sum += a[i * 64 + k] * b[k * 48 + j];
      out[i * 48 + j] = sum > 0 && zlibVersion() ? sum : 0;
    }
}`
	library := func(soname, version string) string {
		return fmt.Sprintf(`"libraries":[{"soname":%q,"version_function":"zlibVersion","version":%q}],`, soname, version)
	}
	there := calling(t, w, machine.Arch(), "there", right, library("libz.so.1", zlib(t)), 1)
	other := calling(t, w, machine.Arch(), "other", right, library("libz.so.1", "0.0.1"), 1)
	missing := calling(t, w, machine.Arch(), "missing", right, library("libtilthmissing.so.1", "1.0"), 1)
	schedules := tiled(t, w, 2)
	built, err := c.Build(t.Context(), t.TempDir(), Batch{Workload: w, Target: machine, Candidates: slices.Concat(there, other, missing, schedules)})
	if err != nil {
		t.Fatal(err)
	}
	plan := runner.Plan{Harness: built.Harness, Reference: built.Reference, Candidates: built.Objects, Threads: 1}
	for _, o := range built.Outcomes {
		switch {
		case o.Candidate == missing[0].Digest:
			if o.Error != compileError || !strings.Contains(o.Message, "libtilthmissing.so.1: it is not installed on this machine") {
				t.Errorf("a library that is missing: %v %s", o.Error, o.Message)
			}
		case o.Error != none:
			t.Fatalf("%s: %v %s", o.Candidate, o.Error, o.Message)
		default:
			plan.Kernels = append(plan.Kernels, o.Candidate)
		}
	}
	verdicts := map[string]runner.Outcome{}
	if err := runner.Measure(t.Context(), plan, func(o runner.Outcome) { verdicts[o.Kernel] = o }); err != nil {
		t.Fatal(err)
	}
	for _, k := range slices.Concat(there, schedules) {
		if o := verdicts[k.Digest]; o.Error != none || len(o.Samples) == 0 {
			t.Errorf("%v %s", o.Error, o.Message)
		}
	}
	o := verdicts[other[0].Digest]
	if o.Error != tilthv1.ErrorClass_ERROR_CLASS_CRASH || !strings.Contains(o.Message, "libz.so.1 has version "+zlib(t)+" here, and the kernel was measured with 0.0.1") {
		t.Errorf("another version: %v %s", o.Error, o.Message)
	}
}

// zlib returns this machine's zlib version, as reported by the library.
func zlib(t *testing.T) string {
	t.Helper()
	tc, machine := toolchaintest.Native(t, 1)
	k, err := userkernel.Parse(fmt.Appendf(nil, `{"name":"z","arch":%q,"numerics":"strict","workloads":[{"text":["x"]}],`+
		`"libraries":[{"soname":"libz.so.1","version_function":"zlibVersion","version":"0.0.1"}],"source":"x"}`, machine.Arch()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = toolchain.PinLibraries(t.Context(), tc, machine, k)
	found := regexp.MustCompile(`this machine has version ([0-9.]+[0-9]):`).FindStringSubmatch(fmt.Sprint(err))
	if found == nil {
		t.Fatal(err)
	}
	return found[1]
}
