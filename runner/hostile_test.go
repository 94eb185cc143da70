package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/internal/wire"
)

// hostile compiles kernels of testdata/hostile.c into an object.
func (b *bench) hostile(t *testing.T, object string, kernels []string, flags ...string) string {
	t.Helper()
	b.kernels(t, "hostile.c", object, append(flags, "-DKERNELS=K("+strings.Join(kernels, "),K(")+")")...)
	return b.path(object)
}

// between puts good kernels in separate objects before and after hostile ones.
func (b *bench) between(t *testing.T, kernels []string, flags ...string) Plan {
	t.Helper()
	p := b.plan(t, "good", "slow")
	p.Candidates = append(p.Candidates, b.hostile(t, "hostile.so", kernels, flags...))
	p.Kernels = append([]string{"good"}, append(kernels, "slow")...)
	p.Limits.Load = 3 * time.Second
	return p
}

func (b *bench) lacks(layer sandbox.Layer) bool {
	return slices.ContainsFunc(b.box.States(), func(s sandbox.State) bool { return s.Layer == layer && s.How == "" })
}

// victim returns a process and a file that a candidate must not reach.
func victim(t *testing.T) (flags []string, lives func() bool, file string) {
	t.Helper()
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	file = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	lives = func() bool { return sleeper.Process.Signal(syscall.Signal(0)) == nil }
	return []string{fmt.Sprintf("-DVICTIM=%d", sleeper.Process.Pid), fmt.Sprintf("-DTOKEN=%q", file)}, lives, file
}

// TestHostileCandidatesCostOnlyThemselves checks that each attack fails or ends its candidate, and that the
// candidates beside it are measured.
func TestHostileCandidatesCostOnlyThemselves(t *testing.T) {
	harmless := []string{"bombs", "fills_disk", "calls_network", "reads_files", "signals", "traces", "links", "gains", "leaves_things", "hangs_at_exit", "calls_the_harness"}
	// Attacks that the harness's own filter does not stop.
	needs := map[string]sandbox.Layer{"reads_files": sandbox.Files, "gains": sandbox.Calls, "leaves_things": sandbox.Calls}
	fatal := []wanted{
		{"closes_report", crash, "is killed, or closes the harness's report"},
		{"forges_report", crash, "writes to the harness's report"},
		{"skips_work", wrong, "y["},
		{"skips_most", wrong, "y["},
		{"sleeps", timeout, "runs longer than"},
	}
	b := newBench(t, native(t))
	flags, lives, file := victim(t)
	want, kernels := []wanted{{"good", none, ""}, {"slow", none, ""}}, []string{}
	for _, name := range harmless {
		if layer := needs[name]; b.lacks(layer) {
			t.Logf("without %s: this machine has no layer %s", name, layer)
			continue
		}
		want, kernels = append(want, wanted{name, none, ""}), append(kernels, name)
	}
	for _, w := range fatal {
		want, kernels = append(want, w), append(kernels, w.kernel)
	}
	p := b.between(t, kernels, flags...)
	p.Limits.Budget = 30 * time.Millisecond
	check(t, measureAll(t, p), want)
	if !lives() {
		t.Error("a candidate killed another process")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "secret" {
		t.Errorf("a candidate changed a file: %q, %v", text, err)
	}
	if left := harnesses(t, p.Harness); len(left) > 0 {
		t.Errorf("processes outlive their batch: %v", left)
	}
}

// TestCandidatesThatChangeTheirProcessSpoilNoNeighbour runs each candidate before an audit, which computes a correct
// result only in a process with the state that it had at its start. The calls of refused candidates fail.
func TestCandidatesThatChangeTheirProcessSpoilNoNeighbour(t *testing.T) {
	caught := []wanted{
		{"rounds", crash, "the floating-point mode"},
		{"flushes_denormals", crash, "the floating-point mode"},
		{"flushes_on_workers", crash, "the floating-point mode"},
		{"blocks_signals", crash, "the blocked signals"},
		{"keeps_descriptors", crash, "its open files"},
		{"closes_descriptors", crash, "its open files"},
		{"replaces_the_runtime", crash, "the functions of the runtime"},
	}
	if runtime.NumCPU() > 1 {
		caught = append(caught, wanted{"confines_workers", crash, "the processors of a thread"})
	}
	for _, kernel := range refusedChanges {
		caught = append(caught, wanted{kernel, none, ""})
	}
	var want []wanted
	var kernels []string
	audits := ""
	for k, w := range caught {
		audit := fmt.Sprintf("audit_%d", k)
		audits += "AUDIT(" + audit + ")"
		want, kernels = append(want, w, wanted{audit, none, ""}), append(kernels, w.kernel, audit)
	}
	b := newBench(t, native(t))
	p := b.plan(t, "good")
	b.kernels(t, "changes.c", "changes.so", "-DKERNELS=K("+strings.Join(kernels, "),K(")+")", "-DAUDITS="+audits, fmt.Sprintf("-DPROCESSORS=%d", runtime.NumCPU()))
	p.Candidates = []string{b.path("changes.so")}
	p.Limits = Limits{Candidate: 10 * time.Second, Sample: 20 * time.Microsecond, Samples: 3, MinSamples: 3, Patience: time.Millisecond}
	t.Run("search", func(t *testing.T) {
		p := p
		p.Kernels, p.Alike = kernels, true
		check(t, measureAll(t, p), want)
	})
	t.Run("finalists", func(t *testing.T) {
		p.Kernels, p.Finalists = kernels[:wire.MaxFinalists], true
		check(t, measureAll(t, p), want[:wire.MaxFinalists])
	})
}

// refusedChanges lists candidates whose changes of their process are refused.
var refusedChanges = []string{"confines_itself", "handles_signals", "starts_timers", "limits_itself", "yields_to_others", "places_memory",
	"splits_pages", "slows_its_threads", "makes_pipes", "starts_threads"}

// BenchmarkNeighbours compares the time of a kernel after candidates that change their process with its time after a
// good one, in turns.
func BenchmarkNeighbours(b *testing.B) {
	m := newBench(b, native(b))
	caught := []string{"rounds", "flushes_denormals", "flushes_on_workers", "blocks_signals", "keeps_descriptors", "closes_descriptors", "replaces_the_runtime"}
	for _, change := range slices.Concat([]string{"good"}, refusedChanges, caught) {
		b.Run(change, func(b *testing.B) {
			p := m.plan(b, "good", "slow")
			objects := map[string][]string{"good": p.Candidates}
			if change != "good" {
				m.kernels(b, "changes.c", "changes.so", "-DKERNELS=K("+change+")", "-DAUDITS=", fmt.Sprintf("-DPROCESSORS=%d", runtime.NumCPU()))
				objects[change] = append([]string{m.path("changes.so")}, p.Candidates...)
			}
			var ratios []float64
			for b.Loop() {
				var seconds [2]float64
				for k, first := range []string{"good", change} {
					p.Candidates, p.Kernels = objects[first], []string{first, "slow"}
					outcomes := measureAll(b, p)
					if seconds[k] = median(&outcomes[1]); outcomes[1].Error != none {
						b.Fatalf("after %s: %v", first, outcomes[1])
					}
				}
				ratios = append(ratios, seconds[1]/seconds[0])
			}
			b.ReportMetric(stats.Of(ratios).Median, "ratio")
		})
	}
}

// lyingModes lists the modes of measurement.
var lyingModes = map[string]func(*Plan){"search": func(*Plan) {}, "finalists": func(p *Plan) { p.Finalists = true }}

// lyingModesWith returns the modes of the tier: only the named one in the quick tier.
func lyingModesWith(quick string) map[string]func(*Plan) {
	if testing.Short() {
		return map[string]func(*Plan){quick: lyingModes[quick]}
	}
	return lyingModes
}

// lie measures a cheating kernel, followed in the same process by a good one of another object.
func (b *bench) lie(t *testing.T, kernel string, mode func(*Plan)) Outcome {
	t.Helper()
	p := b.plan(t, "slow")
	p.Candidates = []string{b.hostile(t, "hostile.so", []string{kernel}, fmt.Sprintf("-DPRACTICE=%d", practiceSets)), p.Candidates[0]}
	p.Kernels, p.Calibration = []string{kernel, "slow"}, &Calibration{}
	// Some report wrong times, so the harness never reaches the requested duration.
	p.Limits.Candidate, p.Limits.Sample, p.Limits.Samples, p.Limits.MinSamples = 60*time.Second, 20*time.Microsecond, 3, 3
	p.Limits.Budget = 20 * time.Second // on a busy machine, a lengthened sample may otherwise be the only one
	mode(&p)
	outcomes := measureAll(t, p)
	if len(outcomes) != 2 {
		t.Fatalf("%d outcomes: %v", len(outcomes), outcomes)
	}
	if o := outcomes[1]; !isHonest(o) {
		t.Errorf("beside %s: %v", kernel, o)
	}
	if best := p.Calibration.BestSeconds(); best < 10e-6 {
		t.Errorf("after %s the device is taken to calibrate in %v s", kernel, best)
	}
	return outcomes[0]
}

// honest is the minimum time of a cheating kernel's work in seconds: 100 times 100,000 multiply-adds on two threads.
const honest = 100e-6

// isHonest reports whether the runner's clock gives a cheating kernel, or the good one in its process, its true time.
// If a busy machine lengthened the false time to nearly that, it is accepted: down to a third, halved for what an
// examination does not count.
func isHonest(o Outcome) bool {
	if o.Error != none {
		return false
	}
	if strings.Contains(o.Remeasured, "clock") {
		return median(&o) >= honest
	}
	return median(&o) >= honest/(2*maxClockRatio)
}

// TestTimingUsesFreshInputs is a regression test: with constant inputs, a kernel that copied its first result seemed
// hundreds of times faster.
func TestTimingUsesFreshInputs(t *testing.T) {
	b := newBench(t, native(t))
	for name, mode := range lyingModesWith("search") {
		t.Run(name, func(t *testing.T) {
			if o := b.lie(t, "copies", mode); o.Error != wrong || !strings.Contains(o.Message, "y[") {
				t.Errorf("copies: %v", o)
			}
			if o := b.lie(t, "memoises", mode); !isHonest(o) {
				t.Errorf("memoises takes %v s; %s", median(&o), o.Remeasured)
			}
		})
	}
}

// TestFreshDataRevealsGuessedResults uses a kernel that is correct and fast on all data of its own process.
func TestFreshDataRevealsGuessedResults(t *testing.T) {
	b := newBench(t, native(t))
	for name, mode := range lyingModesWith("finalists") {
		t.Run(name, func(t *testing.T) {
			if o := b.lie(t, "guesses", mode); o.Error != wrong || !strings.HasPrefix(o.Message, "on other data: y[") {
				t.Errorf("guesses: %v", o)
			}
		})
	}
}

// TestUnexaminedMeasurementsUseFreshData covers measurements without an examination of the best.
func TestUnexaminedMeasurementsUseFreshData(t *testing.T) {
	b := newBench(t, native(t))
	if o := b.lie(t, "copies", func(p *Plan) { p.Alike = true }); o.Error != wrong || !strings.HasPrefix(o.Message, "y[") {
		t.Errorf("copies: %v", o)
	}
}

// TestTimingUsesTheRunnersClock covers candidates that slow the clock of their process.
func TestTimingUsesTheRunnersClock(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: samples last longer by as much as the candidate slows its clock")
	}
	b := newBench(t, native(t))
	for name, mode := range lyingModesWith("search") {
		t.Run(name, func(t *testing.T) {
			if o := b.lie(t, "slows_the_clock", mode); !isHonest(o) {
				t.Errorf("it takes %v s; %s", median(&o), o.Remeasured)
			}
		})
	}
}

// TestDeferredWorkInAnExaminationIsRejected is a regression test: a candidate that computed one group of data during
// another's time seemed fast on the runner's clock, too, because the minimum of an examination counts.
func TestDeferredWorkInAnExaminationIsRejected(t *testing.T) {
	b := newBench(t, native(t))
	for name, mode := range lyingModesWith("finalists") {
		t.Run(name, func(t *testing.T) {
			severalGroups := func(p *Plan) {
				mode(p)
				// On a busy machine, one group may be all that fits the time, and is no place to put anything off.
				p.Limits.exams, p.Limits.group = time.Hour, 4
				// Interruptions of a few samples must not make the rival seem cheaper.
				p.Limits.Samples, p.Limits.MinSamples = 15, 15
			}
			if o := b.lie(t, "defers", severalGroups); o.Error != wrong || !strings.HasPrefix(o.Message, "on other data: y[") {
				t.Errorf("defers takes %v s: %v", median(&o), o)
			}
		})
	}
}

// TestForgedHarnessOutputIsIgnored uses a candidate that knows the harness's output format and forges its own and its
// rival's verdicts.
func TestForgedHarnessOutputIsIgnored(t *testing.T) {
	b := newBench(t, native(t))
	if o := b.lie(t, "forges_verdicts", lyingModes["search"]); o.Error != crash || !strings.Contains(o.Message, "writes to the harness's report") {
		t.Errorf("forges_verdicts: %v", o)
	}
}

// TestObjectsThatSpoilTheProcessFailAlone checks that a candidate that fails beside another object is measured again
// without it.
func TestObjectsThatSpoilTheProcessFailAlone(t *testing.T) {
	b := newBench(t, native(t))
	for name, mode := range lyingModesWith("search") {
		t.Run(name, func(t *testing.T) { b.lie(t, "spoils_rivals", mode) })
	}
}

// TestFinalistThatSkipsWorkIsWrong checks that skipped work is detected in the same round.
func TestFinalistThatSkipsWorkIsWrong(t *testing.T) {
	p := newBench(t, native(t)).between(t, []string{"skips_most"})
	p.Finalists, p.Limits.Budget = true, 50*time.Millisecond
	check(t, measureAll(t, p), []wanted{{"good", none, ""}, {"skips_most", wrong, "y["}, {"slow", none, ""}})
}

// harnesses returns the PIDs of processes that run a program.
func harnesses(t *testing.T, program string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err == nil && bytes.HasPrefix(text, []byte(program)) { // an ended process has no command line
			pids = append(pids, path)
		}
	}
	return pids
}

// TestObjectThatRunsCodeWhenItIsLoadedCostsOnlyItsCandidates is a regression test: constructors run before any
// candidate, and failed the whole batch.
func TestObjectThatRunsCodeWhenItIsLoadedCostsOnlyItsCandidates(t *testing.T) {
	b := newBench(t, native(t))
	for constructor, w := range map[string]wanted{
		"crashes": {"bombs", crash, "its object, when it is loaded: Segmentation fault"},
		"exits":   {"bombs", crash, "its object, when it is loaded: ends the harness"},
		"hang":    {"bombs", timeout, "its object, when it is loaded: runs longer than 3s"},
		"escapes": {"bombs", none, ""},
	} {
		t.Run(constructor, func(t *testing.T) {
			if constructor == "escapes" && b.lacks(sandbox.Files) {
				t.Skipf("this kernel has no layer %s", sandbox.Files)
			}
			p := b.between(t, []string{"bombs"}, "-DCONSTRUCTOR="+constructor)
			want := []wanted{{"good", none, ""}, {"slow", none, ""}, w}
			check(t, measureAll(t, p), want)
		})
	}
}

// TestObjectThatCannotBeLoadedIsNotTheDevicesFault is a regression test: a device was blamed for an invalid object.
func TestObjectThatCannotBeLoadedIsNotTheDevicesFault(t *testing.T) {
	b := newBench(t, native(t))
	p := b.between(t, []string{"bombs"})
	if err := os.WriteFile(b.path("hostile.so"), []byte("\x7fELF and nothing else"), 0o644); err != nil {
		t.Fatal(err)
	}
	var outcomes []Outcome
	err := Measure(t.Context(), p, func(o Outcome) { outcomes = append(outcomes, o) })
	var farm *agent.FarmError
	if !errors.As(err, &farm) || !strings.Contains(err.Error(), "the object cannot be loaded") {
		t.Errorf("got %v", err)
	}
	check(t, outcomes, []wanted{{"good", none, ""}, {"slow", none, ""}})
}

// TestFaultyReferenceBlamesNoCandidate checks that no candidate is blamed.
func TestFaultyReferenceBlamesNoCandidate(t *testing.T) {
	b := newBench(t, native(t))
	p := b.plan(t, "good")
	b.kernels(t, "candidates.c", "reference.so", "-DKERNELS=K(null_pointer)")
	err := Measure(t.Context(), p, func(o Outcome) { t.Errorf("outcome %v", o) })
	if err == nil || !strings.Contains(err.Error(), "harness: Segmentation fault") {
		t.Errorf("got %v", err)
	}
}
