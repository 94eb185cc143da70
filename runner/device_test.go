package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/agent"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/lab/testkit/fakedriver"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// deviceBench holds candidates for a GPU with a fake driver.
type deviceBench struct {
	toolchain *toolchain.Toolchain
	dir       string
	driver    *fakedriver.Driver
	plan      Plan
	ids       []string
}

// onCard returns this machine with a GPU.
func onCard(t testing.TB) *target.Target {
	t.Helper()
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU = &target.GPU{Arch: "sm_90a", Model: "Fake GPU", Multiprocessors: 4, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048,
		ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10, BlockSharedBytes: 227 << 10, MultiprocessorSharedBytes: 228 << 10, L2Bytes: 1 << 20}
	return on
}

// newDeviceBench builds random points of a workload's space, each in a separate module.
func newDeviceBench(t testing.TB, w *expr.Workload, points int) *deviceBench {
	t.Helper()
	return newDeviceBenchOf(t, w, schedules(t, w, onCard(t), points))
}

func newDeviceBenchOf(t testing.TB, w *expr.Workload, list []*schedule.Schedule) *deviceBench {
	t.Helper()
	b := emptyDeviceBench(t, w)
	for k, s := range list {
		id := schedule.Digest(s.Trace())
		p, err := modulefile.Print(fmt.Sprintf("k%d", k), backend.Kernel{ID: id, Schedule: s}, onCard(t))
		if err != nil {
			t.Fatal(err)
		}
		module := cuda.Module(w, []*modulefile.Printed{p}, onCard(t))
		if err := b.driver.Play(t.Context(), module); err != nil {
			t.Fatal(err)
		}
		b.add(t, id, module)
	}
	return b
}

// emptyDeviceBench returns a bench without candidates.
func emptyDeviceBench(t testing.TB, w *expr.Workload) *deviceBench {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on := onCard(t)
	b := &deviceBench{toolchain: tc, dir: t.TempDir(), plan: Plan{Threads: 1, Seed: 1, Limits: Limits{Budget: time.Millisecond}}}
	b.driver, b.plan.Harness = kit(t, tc, on)
	reference, err := cpu.Backend{}.Reference(w, on)
	if err != nil {
		t.Fatal(err)
	}
	b.plan.Device = &backend.Device{Driver: b.driver.Library()}
	b.plan.Reference = b.build(t, reference, "reference.so")
	return b
}

func (b *deviceBench) build(t testing.TB, what toolchain.Build, name string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	what.Objects = keptObjects(t)
	if err := b.toolchain.Build(t.Context(), what, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// add adds a candidate in a separate module.
func (b *deviceBench) add(t testing.TB, id string, module toolchain.Build) {
	t.Helper()
	path := b.build(t, module, fmt.Sprintf("module%d", len(b.ids)))
	b.plan.Candidates, b.ids = append(b.plan.Candidates, path), append(b.ids, id)
}

// made caches the driver and the harness, which all tests share.
var made struct {
	once    sync.Once
	driver  *fakedriver.Driver
	harness string
	err     error
}

// kit returns a new driver, and the harness.
func kit(t testing.TB, tc *toolchain.Toolchain, on *target.Target) (*fakedriver.Driver, string) {
	t.Helper()
	made.once.Do(func() {
		dir := filepath.Join(scratch, "card")
		made.harness = filepath.Join(dir, "harness")
		if made.err = os.Mkdir(dir, 0o755); made.err == nil {
			made.driver, made.err = fakedriver.Make(context.Background(), tc, on, dir)
		}
		if made.err == nil {
			build := cuda.Harness(on)
			build.Parallel, build.Objects = 2, sharedObjects(t)
			made.err = tc.Build(context.Background(), build, made.harness)
		}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	driver, err := made.driver.Copy(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return driver, made.harness
}

// schedules returns different points of a workload's space, the default first.
func schedules(t testing.TB, w *expr.Workload, on *target.Target, n int) (list []*schedule.Schedule) {
	t.Helper()
	space := sketch.New(w, on, schedule.Default)
	rng, seen := rand.New(rand.NewPCG(1, 1)), map[string]bool{}
	for p, ok := space.Default(), true; len(list) < n; p, ok = space.Random(rng) {
		if !ok || seen[space.Format(p)] {
			continue
		}
		seen[space.Format(p)] = true
		s, err := space.Apply(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// measure returns the outcomes by kernel id.
func (b *deviceBench) measure(t testing.TB) (map[string]Outcome, error) {
	t.Helper()
	outcomes := map[string]Outcome{}
	err := Measure(t.Context(), b.plan, func(o Outcome) { outcomes[o.Kernel] = o })
	return outcomes, err
}

// TestCandidatesRunOnADevice checks that the driver receives PTX, launches, constants and inputs, and that results
// are verified, timed and judged as on a processor.
func TestCandidatesRunOnADevice(t *testing.T) {
	for name, w := range map[string]*expr.Workload{"product": kerneltest.Product(t, 64, 48, 80), "long product": kerneltest.Product(t, 33, 129, 65),
		"boxes": kerneltest.ProductOf(t, array.BFloat16, 100, 256, 80)} {
		t.Run(name, func(t *testing.T) {
			points := 4
			if testing.Short() {
				if points = 2; name != "product" {
					t.Skip("slow: simulates launches of larger products")
				}
			}
			b := newDeviceBench(t, w, points)
			box, err := sandbox.Open(sandbox.BestEffort, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close()
			b.plan.Sandbox = box
			outcomes, err := b.measure(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range b.ids {
				if o := outcomes[id]; o.Error != none || len(o.Samples) == 0 {
					t.Errorf("%.12s: %v, %s, %d samples", id, o.Error, o.Message, len(o.Samples))
				}
			}
		})
	}
}

// TestTMACopiesReadTheWorkspace checks a tensor map of the workspace, whose address changes when the workspace grows.
func TestTMACopiesReadTheWorkspace(t *testing.T) {
	w, err := expr.Parse("tilth-workload 1\n" + kerneltest.WarpgroupAfterMap)
	if err != nil {
		t.Fatal(err)
	}
	var list []*schedule.Schedule
	for _, rest := range []string{"", "cache-write 0\n"} { // it adds a tensor to the workspace
		s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+kerneltest.WarpgroupBoxesAfterMap()+rest))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	b := newDeviceBenchOf(t, w, list)
	outcomes, err := b.measure(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range b.ids {
		if o := outcomes[id]; o.Error != none || len(o.Samples) == 0 {
			t.Errorf("%.12s: %v, %s, %d samples", id, o.Error, o.Message, len(o.Samples))
		}
	}
}

// TestDeviceFaultsFailOneCandidate checks that other candidates get a new process, because device errors are sticky.
func TestDeviceFaultsFailOneCandidate(t *testing.T) {
	for _, c := range []struct {
		tell    string
		class   tilthv1.ErrorClass
		message string
	}{
		{"illegal", crash, "an illegal memory access was encountered"},
		{"hang", timeout, ""},
	} {
		t.Run(c.tell, func(t *testing.T) {
			b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 2)
			b.plan.Limits.Candidate = 200 * time.Millisecond
			if err := b.driver.Tell(c.tell, 1); err != nil {
				t.Fatal(err)
			}
			outcomes, err := b.measure(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range b.ids {
				if o := outcomes[id]; o.Error != c.class || !strings.Contains(o.Message, c.message) {
					t.Errorf("%.12s: %v, %s", id, o.Error, o.Message)
				}
			}
		})
	}
}

// TestCardThatVanishesIsNoCandidatesFault checks for an error and no outcomes, so that candidates are retried
// elsewhere.
func TestCardThatVanishesIsNoCandidatesFault(t *testing.T) {
	b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 2)
	if err := b.driver.Tell("vanish", 1); err != nil {
		t.Fatal(err)
	}
	outcomes, err := b.measure(t)
	var farm *agent.FarmError
	if err == nil || errors.As(err, &farm) || !strings.Contains(err.Error(), "no CUDA-capable device is detected") || len(outcomes) > 0 {
		t.Errorf("the error is %v and the outcomes are %+v", err, outcomes)
	}
}

// TestTwoCardsAreApart checks that a fault on one GPU does not affect the other.
func TestTwoCardsAreApart(t *testing.T) {
	b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 1)
	for what, number := range map[string]int{"devices": 2, "illegal.1": 1} {
		if err := b.driver.Tell(what, number); err != nil {
			t.Fatal(err)
		}
	}
	for visible, class := range map[string]tilthv1.ErrorClass{"0": none, "1": crash, fakedriver.ID(0): none, fakedriver.ID(1): crash, fakedriver.ID(1) + "," + fakedriver.ID(0): crash} {
		b.plan.Device = &backend.Device{Driver: b.driver.Library(), Visible: visible}
		outcomes, err := b.measure(t)
		if err != nil || outcomes[b.ids[0]].Error != class {
			t.Errorf("on %s: %v, %v", visible, outcomes, err)
		}
	}
}

// TestCubinIsUsedWhereTheDriverTakesIt checks that the PTX is used otherwise.
func TestCubinIsUsedWhereTheDriverTakesIt(t *testing.T) {
	assembler := filepath.Join(t.TempDir(), "ptxas")
	if err := fakedriver.WriteAssembler(assembler); err != nil {
		t.Fatal(err)
	}
	t.Setenv(toolchain.AssemblerVariable, assembler)
	b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 1)
	b.plan.Kernels = b.ids
	good, err := os.ReadFile(b.plan.Candidates[0])
	if err != nil {
		t.Fatal(err)
	}
	ptx, cubin, ok := toolchaintest.DeviceCode(good)
	if !ok || len(cubin) == 0 {
		t.Fatalf("the module has %d bytes of PTX and %d of a cubin", len(ptx), len(cubin))
	}
	for _, c := range []struct {
		name   string
		refuse int
		spoil  func() []byte
		class  tilthv1.ErrorClass
	}{
		{"both are good", 0, func() []byte { return good }, none},
		{"the PTX is not", 0, func() []byte { return bytes.Replace(good, []byte(".version"), []byte(".Version"), 1) }, none},
		{"the driver refuses cubins", 1, func() []byte { return good }, none},
		{"neither is taken", 1, func() []byte { return bytes.Replace(good, []byte(".version"), []byte(".Version"), 1) }, crash},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := errors.Join(b.driver.Tell("refuse", c.refuse), os.WriteFile(b.plan.Candidates[0], c.spoil(), 0o600)); err != nil {
				t.Fatal(err)
			}
			outcomes, err := b.measure(t)
			if o := outcomes[b.ids[0]]; err != nil || o.Error != c.class {
				t.Errorf("%v, %s, %v; want %v", o.Error, o.Message, err, c.class)
			}
		})
	}
}

// TestDeviceThatIsNotThereIsNoCandidatesFault checks that the error names what is missing.
func TestDeviceThatIsNotThereIsNoCandidatesFault(t *testing.T) {
	b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 1)
	library := b.plan.Device.Driver
	for _, c := range []struct {
		name            string
		devices, memory int
		on              backend.Device
		want            string
	}{
		{"no driver", 1, 1024, backend.Device{Driver: filepath.Join(t.TempDir(), "libcuda.so.1")}, "no driver of NVIDIA's GPUs"},
		{"no card", 0, 1024, backend.Device{Driver: library}, "no CUDA-capable device is detected"},
		{"too few cards", 2, 1024, backend.Device{Driver: library, Number: 2}, "there is no GPU 2: this machine has 2"},
		{"no memory", 1, 0, backend.Device{Driver: library}, "out of memory"},
		{"the second of two cards", 2, 1024, backend.Device{Driver: library, Number: 1}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for what, number := range map[string]int{"devices": c.devices, "memory": c.memory} {
				if err := b.driver.Tell(what, number); err != nil {
					t.Fatal(err)
				}
			}
			b.plan.Device = &c.on
			outcomes, err := b.measure(t)
			if c.want == "" {
				if err != nil || outcomes[b.ids[0]].Error != none {
					t.Errorf("%+v, %v", outcomes, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || len(outcomes) > 0 {
				t.Errorf("the error is %v and the outcomes are %v, want %q", err, outcomes, c.want)
			}
		})
	}
}

// TestCandidateThatIsWrongOnADeviceIsFound covers code with wrong results, and files that are not modules.
func TestCandidateThatIsWrongOnADeviceIsFound(t *testing.T) {
	b := newDeviceBench(t, kerneltest.Product(t, 32, 32, 32), 1)
	b.plan.Kernels = b.ids
	good, err := os.ReadFile(b.plan.Candidates[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		spoil   func(text string) string
		class   tilthv1.ErrorClass
		message string
	}{
		{"its arguments are exchanged", func(s string) string {
			return regexp.MustCompile(`(?m)^(launch .*) a0 a1 `).ReplaceAllString(s, "$1 a1 a0 ")
		}, wrong, ""},
		{"it is cut short", func(s string) string { return s[:len(s)-10] }, 0, "is no module for a device"},
		{"an argument that is not there", func(s string) string {
			return regexp.MustCompile(`(?m)^(launch .*) a0 a1 `).ReplaceAllString(s, "$1 a0 a9 ")
		}, 0, "is no module for a device"},
		{"its code is another", func(s string) string { return strings.Replace(s, ".version", ".Version", 1) }, crash, "device kernel image is invalid"},
		{"it has no such kernel", func(s string) string { return strings.Replace(s, "launch k0_0 ", "launch k0_1 ", 1) }, crash, "named symbol not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spoilt := c.spoil(string(good))
			if spoilt == string(good) {
				t.Fatal("nothing was spoilt")
			}
			if err := os.WriteFile(b.plan.Candidates[0], []byte(spoilt), 0o600); err != nil {
				t.Fatal(err)
			}
			outcomes, err := b.measure(t)
			var farm *agent.FarmError
			if c.class == 0 { // the builder's file is malformed, which is no candidate's fault
				if !errors.As(err, &farm) || !strings.Contains(err.Error(), c.message) {
					t.Errorf("the error is %v, want %q", err, c.message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if o := outcomes[b.ids[0]]; o.Error != c.class || !strings.Contains(o.Message, c.message) {
				t.Errorf("%v, %s; want %v, %q", o.Error, o.Message, c.class, c.message)
			}
		})
	}
}

// TestExcessiveDeviceMemoryFailsItsCandidates checks that an oversized workload fails all candidates, and oversized
// scratch memory only its candidate. Memory used by other programs fails none.
func TestExcessiveDeviceMemoryFailsItsCandidates(t *testing.T) {
	b := newDeviceBench(t, kerneltest.Product(t, 512, 512, 8), 2)
	b.plan.Kernels = b.ids
	good, err := os.ReadFile(b.plan.Candidates[1])
	if err != nil {
		t.Fatal(err)
	}
	greedy := regexp.MustCompile(`(?m)^(kernel \S+ )\d+`).ReplaceAllString(string(good), fmt.Sprintf("${1}%d", 40<<20))
	for _, c := range []struct {
		name               string
		memory, used       int
		greedy             bool
		first, second, err string
	}{
		{"enough", 32, 0, false, "", "", ""},
		{"less than any process may have", 3, 0, false, "the workload takes 3 MiB of the GPU's memory, and a process may have 2 MiB",
			"the workload takes 3 MiB of the GPU's memory, and a process may have 2 MiB", ""},
		{"less than others leave", 32, 28, false, "", "", "of which other programs leave 2 MiB: end them"},
		{"scratch", 32, 0, true, "", "its scratch takes 40 MiB of the GPU's memory, of which 26 MiB are left", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := string(good)
			if c.greedy {
				text = greedy
			}
			err := errors.Join(os.WriteFile(b.plan.Candidates[1], []byte(text), 0o600), b.driver.Tell("memory", c.memory), b.driver.Tell("used", c.used))
			if err != nil {
				t.Fatal(err)
			}
			outcomes, err := b.measure(t)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || len(outcomes) > 0 {
					t.Errorf("%v, %+v; want %s", err, outcomes, c.err)
				}
				return
			}
			for k, want := range []string{c.first, c.second} {
				if o := outcomes[b.ids[k]]; err != nil || (o.Error == none) != (want == "") || !strings.Contains(o.Message, want) {
					t.Errorf("candidate %d: %v, %s, %v; want %q", k, o.Error, o.Message, err, want)
				}
			}
		})
	}
}
