package runner

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

const (
	none    = tilthv1.ErrorClass_ERROR_CLASS_NONE
	wrong   = tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT
	crash   = tilthv1.ErrorClass_ERROR_CLASS_CRASH
	timeout = tilthv1.ErrorClass_ERROR_CLASS_TIMEOUT
)

// bench holds the harness and testdata's kernels, compiled for one target.
type bench struct {
	tc     *toolchain.Toolchain
	target *target.Target
	dir    string
	box    *sandbox.Sandbox
}

func newBench(t testing.TB, machine *target.Target) *bench {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{tc: tc, target: machine, dir: t.TempDir()}
	if b.box, err = sandbox.Open(sandbox.BestEffort, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.box.Close(); err != nil {
			t.Error(err)
		}
	})
	build := cruntime.Harness(machine)
	build.Parallel, build.Objects = 2, sharedObjects(t)
	if err := tc.Build(t.Context(), build, b.path("harness")); err != nil {
		t.Fatal(err)
	}
	b.kernels(t, "reference.c", "reference.so")
	return b
}

// builds returns a function that compiles to a temporary file and returns its path. It ends the test on the given
// error, or if the compiler fails.
func builds(t testing.TB, tc *toolchain.Toolchain) func(what toolchain.Build, err error, name string) string {
	dir := t.TempDir()
	return func(what toolchain.Build, err error, name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		what.Objects = sharedObjects(t)
		if err == nil {
			err = tc.Build(t.Context(), what, path)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// sharedObjects returns the object cache of the tests of all packages, most of which compile the same harness.
func sharedObjects(t testing.TB) *toolchain.Objects {
	t.Helper()
	o, err := toolchain.OpenObjects(toolchaintest.Cache(t, "objects"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// keptObjects returns the object cache of this package's GPU tests, whose keys exclude the code of the fake driver.
func keptObjects(t testing.TB) *toolchain.Objects {
	t.Helper()
	o, err := toolchain.OpenObjects(filepath.Join(scratch, "objects"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) kernels(t testing.TB, source, output string, flags ...string) {
	t.Helper()
	err := b.tc.Build(t.Context(), toolchain.Build{Target: b.target, Form: toolchain.Kernels, Flags: flags, Headers: append(cruntime.PoolHeaders(), testFile(t, "workload.h")),
		Sources: []toolchain.File{testFile(t, source)}, Objects: sharedObjects(t)}, b.path(output))
	if err != nil {
		t.Fatal(err)
	}
}

func testFile(t testing.TB, name string) toolchain.File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return toolchain.File{Name: name, Text: string(text)}
}

// plan returns a plan for the named kernels of testdata/candidates.c.
func (b *bench) plan(t testing.TB, kernels ...string) Plan {
	t.Helper()
	b.kernels(t, "candidates.c", "candidates.so", "-DKERNELS=K("+strings.Join(kernels, "),K(")+")")
	scratch := b.path("scratch")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	return Plan{Harness: b.path("harness"), Reference: b.path("reference.so"), Candidates: []string{b.path("candidates.so")},
		Threads: 2, Seed: 1, ReferenceCache: b.path("scratch/results"), Sandbox: b.box,
		// This is the timeout for hanging candidates. It suffices for others on a busy machine.
		Limits: Limits{Candidate: 3 * time.Second}}
}

func native(t testing.TB) *target.Target {
	t.Helper()
	machine, err := target.Native(0)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func measureAll(t testing.TB, p Plan) []Outcome {
	t.Helper()
	var outcomes []Outcome
	if err := Measure(t.Context(), p, func(o Outcome) { outcomes = append(outcomes, o) }); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// wanted is the expected outcome of a kernel of testdata/candidates.c.
type wanted struct {
	kernel  string
	class   tilthv1.ErrorClass
	message string
}

func check(t *testing.T, got []Outcome, want []wanted) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d outcomes for %d kernels: %v", len(got), len(want), got)
	}
	for k, o := range got {
		w := want[k]
		if o.Kernel != w.kernel || o.Error != w.class || !strings.Contains(o.Message, w.message) || strings.Contains(o.Message, "\n") {
			t.Errorf("%s: got %s, %v %q, want %v %q", w.kernel, o.Kernel, o.Error, o.Message, w.class, w.message)
		}
		if (len(o.Samples) > 0) != (w.class == none) {
			t.Errorf("%s: %d samples", w.kernel, len(o.Samples))
		}
	}
}

// aborted returns the message of a candidate that calls abort. In a PID namespace it cannot signal any process,
// including itself.
func (b *bench) aborted() string {
	if b.lacks(sandbox.Processes) && !b.lacks(sandbox.Calls) {
		return "Segmentation fault"
	}
	return "Aborted"
}

func TestMeasureTellsGoodFromBad(t *testing.T) {
	b := newBench(t, native(t))
	want := []wanted{
		{"good", none, ""},
		{"wrong", wrong, "y[7] is"},
		{"incomplete", wrong, "y[999] is"},
		{"accumulates", wrong, "y[0] is"},
		{"past_end", crash, "writes 4 bytes past the end of y"},
		{"before_begin", crash, "writes 4 bytes before the beginning of y"},
		{"far_past_end", crash, "past the end of y"},
		{"past_workspace", crash, "past the end of workspace"},
		{"good", none, ""},
		{"writes_input", crash, "writes to x, which is read-only"},
		{"null_pointer", crash, "Segmentation fault"},
		{"worker_crashes", crash, "Segmentation fault"},
		{"divides_by_zero", crash, b.aborted()},
		{"exits", crash, "exits with status 3"},
		{"exits_well", crash, "ends the harness"},
		{"endless", timeout, "runs longer than"},
		{"floods", none, ""},
		{"garbles_report", crash, "writes to the harness's report"},
		{"escapes", none, ""},
		{"writes_file", none, ""},
		{"good", none, ""},
	}
	var kernels []string
	for _, w := range want {
		kernels = append(kernels, w.kernel)
	}
	p := b.plan(t, kernels...)
	check(t, measureAll(t, p), want)
	if _, err := os.Stat(filepath.Join(b.path("scratch"), "escaped")); err == nil {
		t.Error("a candidate made a folder")
	}
	if _, err := os.Stat(filepath.Join(b.path("scratch"), "written.txt")); err == nil {
		t.Error("a candidate made a file")
	}
}

// TestKernelsDoNotSimulate: a kernel that has the function of a simulated device does not set its time.
func TestKernelsDoNotSimulate(t *testing.T) {
	if s := measureAll(t, newBench(t, native(t)).plan(t, "takes_back_a_quarter"))[0].Samples; len(s) == 0 || s[0] <= 0 {
		t.Errorf("%v seconds", s)
	}
}

func TestKernelsShareEqualPacks(t *testing.T) {
	got := measureAll(t, newBench(t, native(t)).plan(t, "good", "wrong", "shares_packed"))
	check(t, got, []wanted{{"good", none, ""}, {"wrong", wrong, "y[7] is"}, {"shares_packed", none, ""}})
}

func TestPackedConstantsOfDifferentSizesShareTheirPlace(t *testing.T) {
	b := newBench(t, native(t))
	p := b.plan(t, "good")
	b.kernels(t, "candidates.c", "candidates.so", "-DKERNELS=K(good),MORE,K(good),MORE")
	check(t, measureAll(t, p), []wanted{{"good", none, ""}, {"packs_more", none, ""}, {"good", none, ""}, {"packs_more", none, ""}})
}

func TestMemoryIsBounded(t *testing.T) {
	b := newBench(t, native(t))
	p := b.plan(t, "hoards_memory", "good")
	p.Limits = Limits{MemoryBytes: 512 << 20, Candidate: 10 * time.Second}
	check(t, measureAll(t, p), []wanted{{"hoards_memory", crash, b.aborted()}, {"good", none, ""}})
}

func TestGreedyCandidateCostsOnlyItself(t *testing.T) {
	b := newBench(t, native(t))
	p := b.plan(t, "good")
	b.kernels(t, "candidates.c", "candidates.so", "-DKERNELS=K(good),GREEDY,K(good)")
	check(t, measureAll(t, p), []wanted{{"good", none, ""}, {"greedy", crash, "of workspace"}, {"good", none, ""}})
}

func TestMeasureIsTheSameUnderEveryCompiler(t *testing.T) {
	t.Setenv(toolchain.Variable, "gcc")
	b := newBench(t, native(t))
	check(t, measureAll(t, b.plan(t, "good", "past_end", "wrong")),
		[]wanted{{"good", none, ""}, {"past_end", crash, "past the end of y"}, {"wrong", wrong, "y[7]"}})
}

func TestSlowCandidatesAreDroppedEarly(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "good", "slow")
	p.Limits.Candidate = 5 * time.Second
	alone := measureAll(t, p)
	p.BestSeconds = slices.Min(alone[0].Samples)
	raced := measureAll(t, p)
	if len(raced[1].Samples) != 1 {
		t.Errorf("a candidate a hundred times slower than the best was sampled %d times", len(raced[1].Samples))
	}
}

// TestCandidatesHardlyBehindGetFewSamples uses the maximum noise of the best, which does not exclude that they are
// equally fast.
func TestCandidatesHardlyBehindGetFewSamples(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "good")
	p.Limits.Budget = time.Hour // irrelevant on a busy machine
	p.BestSeconds, p.BestSamples = 1e-9, []float64{1e-9, 1e-9, 1e-9, 10, 10}
	if got := measureAll(t, p)[0]; len(got.Samples) != defaultMin {
		t.Errorf("%d samples, want %d", len(got.Samples), defaultMin)
	}
	p.BestSeconds = 1000                                                                        // longer than any execution
	if got := measureAll(t, p)[0]; len(got.Samples) != defaultSamples && got.Remeasured == "" { // a busy machine confirms few claims
		t.Errorf("%d samples of a candidate that is faster, want %d", len(got.Samples), defaultSamples)
	}
}

func TestKernelsOfSeveralObjectsAreChosenById(t *testing.T) {
	b := newBench(t, native(t))
	p := b.plan(t, "good", "wrong", "slow")
	b.kernels(t, "candidates.c", "more.so", "-DKERNELS=K(null_pointer),K(good),K(incomplete)")
	p.Candidates = append(p.Candidates, b.path("more.so"))
	p.Kernels = []string{"null_pointer", "wrong", "incomplete"}
	check(t, measureAll(t, p), []wanted{{"wrong", wrong, "y[7] is"}, {"null_pointer", crash, "Segmentation fault"}, {"incomplete", wrong, "y[999] is"}})
}

// TestCandidatesRunOnTheProcessorsOfTheirClass with all available layers of the sandbox.
func TestCandidatesRunOnTheProcessorsOfTheirClass(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "right_on_one")
	p.Threads, p.CPUs = 1, []int{0}
	check(t, measureAll(t, p), []wanted{{"right_on_one", none, ""}})
	p.CPUs = []int{1023}
	if err := Measure(t.Context(), p, func(Outcome) {}); err == nil || !strings.Contains(err.Error(), "running on the processors 1023") {
		t.Errorf("on a processor that is not there: %v", err)
	}
}

// TestEnergyIsPowerTimesLatency covers searches and finalists. Wrong candidates have no energy.
func TestEnergyIsPowerTimesLatency(t *testing.T) {
	const watts = 2.5
	sys := fstest.MapFS{"class/hwmon/hwmon0/name": {Data: []byte("ina226\n")}, "class/hwmon/hwmon0/power1_input": {Data: []byte("2500000\n")}}
	meter, err := OpenMeter(sys, "") // of a board that is not available
	if err != nil {
		t.Fatal(err)
	}
	p := newBench(t, native(t)).plan(t, "good", "wrong")
	p.Meter = meter
	p.BestSeconds = 1e-9 // no race against the best
	outcomes := measureAll(t, p)
	check(t, outcomes, []wanted{{"good", none, ""}, {"wrong", wrong, "y[7] is"}})
	if o := outcomes[0]; len(o.Samples) == 0 || math.Abs(o.EnergyJoules-watts*stats.Of(o.Samples).Median) > 1e-9*o.EnergyJoules {
		t.Errorf("%v J for samples of %v s", o.EnergyJoules, o.Samples)
	}
	if outcomes[1].EnergyJoules != 0 {
		t.Errorf("what is wrong takes %v J", outcomes[1].EnergyJoules)
	}
	p.Finalists, p.Kernels = true, []string{"good"}
	if o := measureAll(t, p)[0]; math.Abs(o.EnergyJoules-watts*stats.Of(o.Samples).Median) > 1e-9*o.EnergyJoules || o.EnergyJoules == 0 {
		t.Errorf("a finalist: %v J for samples of %v s", o.EnergyJoules, o.Samples)
	}
}

func TestFinalistsTakeTurns(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "good", "wrong", "slow", "null_pointer", "accumulates")
	p.Limits.Budget = 10 * time.Second
	p.Finalists, p.Kernels = true, []string{"slow", "null_pointer", "good", "accumulates", "wrong"}
	got := measureAll(t, p)
	check(t, got, []wanted{{"slow", none, ""}, {"null_pointer", crash, "Segmentation fault"}, {"good", none, ""}, {"accumulates", wrong, "y[0] is"},
		{"wrong", wrong, "y[7] is"}})
	if slow, good := len(got[0].Samples), len(got[2].Samples); slow != good && got[2].Remeasured == "" || slow < 15 {
		t.Errorf("%d and %d samples: finalists are sampled equally, and more often than in a search", slow, good)
	}
}

// TestFinalistThatGoesWrongInARaceIsToBlame checks that its rivals are not, in any order.
func TestFinalistThatGoesWrongInARaceIsToBlame(t *testing.T) {
	for bad, want := range map[string]wanted{"endless_later": {"endless_later", timeout, "runs longer"}, "null_pointer_later": {"null_pointer_later", crash, "Segmentation fault"}} {
		p := newBench(t, native(t)).plan(t, "good", "slow", bad)
		// The budget lasts until the candidate goes wrong, even on a busy machine.
		p.Limits.Candidate, p.Limits.Budget, p.Limits.Sample = 500*time.Millisecond, 250*time.Millisecond, time.Microsecond
		p.Limits.Samples = 10
		p.Finalists, p.Kernels = true, []string{"good", bad, "slow"}
		check(t, measureAll(t, p), []wanted{{"good", none, ""}, want, {"slow", none, ""}})
	}
}

func TestTooManyFinalistsAreRefused(t *testing.T) {
	err := Measure(t.Context(), Plan{Finalists: true, Kernels: make([]string, 9)}, func(Outcome) {})
	if err == nil || !strings.Contains(err.Error(), "at most 8") {
		t.Errorf("got %v", err)
	}
}

func TestMeasurementsRecordTheDeviceNoise(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "good", "null_pointer", "good")
	p.Calibration = &Calibration{}
	for _, o := range measureAll(t, p) {
		if o.CalibrationRatio < 1 {
			t.Errorf("%s: the calibration took %g times the best known", o.Kernel, o.CalibrationRatio)
		}
	}
	// After one unrealistically fast calibration the device always seems disturbed. Measuring continues when its
	// patience is spent, and reports the disturbance.
	p.Calibration.add(1e-9)
	p.Limits.Patience = time.Millisecond
	for _, o := range measureAll(t, p) {
		if o.CalibrationRatio < 1.5 {
			t.Errorf("%s: the calibration took %g times what it never takes", o.Kernel, o.CalibrationRatio)
		}
	}
}

// slotBytes is the size of the outputs of testdata/reference.c.
const slotBytes = 4032

func TestReferenceResultsAreKept(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "good")
	measureAll(t, p)
	good, err := os.ReadFile(p.ReferenceCache)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := slices.Clone(good)
	for k := range len(good) / slotBytes { // fewer on a busy machine
		spoiled[len(spoiled)-(k+1)*slotBytes+3] ^= 0x40 // the exponent of the first element
	}
	cases := map[string]struct {
		content []byte
		class   tilthv1.ErrorClass
	}{
		"whole":     {good, none},
		"used":      {spoiled, wrong},
		"cut short": {good[:len(good)/2], none},
		"too long":  {append(slices.Clone(good), 0), none},
		"foreign":   {[]byte("something else"), none},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(p.ReferenceCache, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := measureAll(t, p)[0]; got.Error != c.class {
				t.Errorf("got %v %s", got.Error, got.Message)
			}
		})
	}
}

func TestDeviceFaultsAreErrors(t *testing.T) {
	b := newBench(t, native(t))
	good := b.plan(t, "good")
	cases := map[string]struct {
		edit func(*Plan)
		want string
	}{
		"no harness":        {func(p *Plan) { p.Harness = b.path("none") }, "none: no such file"},
		"no candidates":     {func(p *Plan) { p.Candidates = []string{b.path("none.so")} }, "none.so: no such file"},
		"no kernels at all": {func(p *Plan) { p.Candidates = []string{p.Harness} }, "loading kernels"},
		"too little memory": {func(p *Plan) { p.Limits.MemoryBytes = 1 << 20 }, "harness"},
		"bad emulator":      {func(p *Plan) { p.Emulator = []string{"/bin/false"} }, "did not begin under /bin/false"},
		"bad threads":       {func(p *Plan) { p.Threads = 0 }, "bad argument: --threads"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := good
			c.edit(&p)
			err := Measure(t.Context(), p, func(o Outcome) { t.Logf("outcome %v", o) })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestCancelledMeasurementEndsAtOnce(t *testing.T) {
	p := newBench(t, native(t)).plan(t, "slow", "endless")
	// The first outcome is final after a calibration, which happens after some measuring time.
	p.Limits.Candidate, p.Limits.Budget, p.Limits.Sample = time.Hour, time.Second, 20*time.Millisecond
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := Measure(ctx, p, func(Outcome) { cancel(lost) })
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

func TestForeignTargetUnderEmulator(t *testing.T) {
	for name, emulator := range map[string][]string{
		"arm64":   {"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"},
		"arm32":   {"qemu-arm", "-cpu", "cortex-a7", "-L", "/usr/arm-linux-gnueabihf"},
		"riscv64": {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128", "-L", "/usr/riscv64-linux-gnu"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "arm64" {
				t.Skip("slow: compiles a harness and kernels for each architecture")
			}
			qemu, err := exec.LookPath(emulator[0])
			if err != nil {
				t.Fatalf("%s is not installed: run scripts/packages.sh test", emulator[0])
			}
			board, err := target.Parse(name, 2)
			if err != nil {
				t.Fatal(err)
			}
			p := newBench(t, board).plan(t, "good", "wrong", "past_end", "null_pointer", "good")
			p.Emulator = append([]string{qemu}, emulator[1:]...)
			p.Limits.Candidate = 5 * time.Second
			check(t, measureAll(t, p), []wanted{{"good", none, ""}, {"wrong", wrong, "y[7]"}, {"past_end", crash, "past the end of y"},
				{"null_pointer", crash, ""}, {"good", none, ""}})
		})
	}
}

// TestDeviceWithOtherRegistersOfSVEMeasuresNothing checks that the harness detects the vector length before any
// candidate runs.
func TestDeviceWithOtherRegistersOfSVEMeasuresNothing(t *testing.T) {
	board, err := target.Parse("neoverse-v1", 1)
	if err != nil {
		t.Fatal(err)
	}
	p := newBench(t, board).plan(t, "good")
	p.Emulator = []string{"qemu-aarch64", "-cpu", "max,sve512=on,sve1024=off", "-L", "/usr/aarch64-linux-gnu"}
	err = Measure(t.Context(), p, func(o Outcome) { t.Errorf("outcome %v", o) })
	if err == nil || !strings.Contains(err.Error(), "the code needs SVE registers of 256 bits, and those of this process have 512") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkMeasure measures a batch of 16 good kernels of 0.1 ms against an incumbent, in a sandbox and with limits
// only. It reports the cost of a trial and the apparent speed of the kernel.
func BenchmarkMeasure(b *testing.B) {
	kernels := slices.Repeat([]string{"good"}, 16)
	p := newBench(b, native(b)).plan(b, kernels...)
	for _, mode := range []struct {
		name string
		box  *sandbox.Sandbox
	}{{"sandbox", p.Sandbox}, {"off", nil}} {
		b.Run(mode.name, func(b *testing.B) {
			p.Sandbox = mode.box
			var samples []float64
			for b.Loop() {
				for _, o := range measureAll(b, p) {
					samples = append(samples, o.Samples...)
				}
			}
			slices.Sort(samples)
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*len(kernels))*1e3, "ms/trial")
			b.ReportMetric(samples[len(samples)/2]*1e6, "median-µs")
		})
	}
}

// TestKernelsOfRangesAreTimedAtEachPoint: the result of the kernel is right only if it has run with the other extents
// before the largest one.
func TestKernelsOfRangesAreTimedAtEachPoint(t *testing.T) {
	b := newBench(t, native(t))
	p := b.plan(t, "good")
	b.kernels(t, "points.c", "reference.so", "-DKERNEL=reference")
	b.kernels(t, "points.c", "points.so", "-DKERNEL=candidate")
	p.Candidates = []string{b.path("points.so")}
	check(t, measureAll(t, p), []wanted{{"points", none, ""}})
}
