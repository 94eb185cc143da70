package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/opencl"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// openclBench holds candidates for the first OpenCL device, which may be a processor.
type openclBench struct {
	plan Plan
	ids  []string
}

// newOpenCLBench builds different points of a workload's space, each in a separate module.
func newOpenCLBench(t testing.TB, w *expr.Workload, points int) *openclBench {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := opencl.Backend{}.Target("opencl", 1)
	if err != nil {
		t.Fatal(err)
	}
	b := &openclBench{plan: Plan{Threads: 1, Seed: 1, Limits: Limits{Budget: time.Millisecond}, Device: opencl.Backend{}.Device(on)}}
	build := builds(t, tc)
	reference, err := opencl.Backend{}.Reference(w, on)
	b.plan.Reference, b.plan.Harness = build(reference, err, "reference.so"), build(opencl.Harness(on), nil, "harness")
	for k, s := range openclSchedules(t, w, on, points) {
		id := schedule.Digest(s.Trace())
		p, err := opencl.Backend{}.Print(fmt.Sprintf("k%d", k), backend.Kernel{ID: id, Schedule: s}, on)
		if err != nil {
			t.Fatal(err)
		}
		module, err := opencl.Backend{}.Module(w, []backend.Printed{p}, on)
		b.plan.Candidates, b.ids = append(b.plan.Candidates, build(module, err, fmt.Sprintf("module%d", k))), append(b.ids, id)
	}
	return b
}

// openclSchedules returns schedules with small tiles, which compile fast.
func openclSchedules(t testing.TB, w *expr.Workload, on *target.Target, n int) []*schedule.Schedule {
	t.Helper()
	small := on.Clone()
	small.GPU.BlockThreads = 128
	return schedules(t, w, small, n)
}

func (b *openclBench) measure(t testing.TB) (map[string]Outcome, error) {
	t.Helper()
	outcomes := map[string]Outcome{}
	err := Measure(t.Context(), b.plan, func(o Outcome) { outcomes[o.Kernel] = o })
	return outcomes, err
}

// TestCandidatesRunByOpenCL checks that the driver compiles them in the sandbox of a compiling device, that results
// are correct and timed, and that no files remain.
func TestCandidatesRunByOpenCL(t *testing.T) {
	points := 2
	if testing.Short() {
		points = 1
	}
	b := newOpenCLBench(t, kerneltest.Product(t, 33, 48, 65), points)
	box, err := sandbox.Open(sandbox.BestEffort, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	b.plan.Sandbox = box
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	outcomes, err := b.measure(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range b.ids {
		if o := outcomes[id]; o.Error != none || len(o.Samples) == 0 {
			t.Errorf("%.12s: %v, %s, %d samples", id, o.Error, o.Message, len(o.Samples))
		}
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}

// TestOpenCLFailuresFailOneCandidate covers source that does not compile or lacks the kernel, and kernels that hang,
// write out of bounds or are wrong. Each failure is attributed to its candidate.
func TestOpenCLFailuresFailOneCandidate(t *testing.T) {
	b := newOpenCLBench(t, kerneltest.Product(t, 32, 32, 32), 1)
	b.plan.Kernels = b.ids
	good, err := os.ReadFile(b.plan.Candidates[0])
	if err != nil {
		t.Fatal(err)
	}
	body := regexp.MustCompile(`(?m)^(TILTH_KERNEL\(k0_0, .*\{)$`)
	for _, c := range []struct {
		name    string
		spoil   func(text string) string
		class   tilthv1.ErrorClass
		message string
	}{
		{"it does not compile", func(s string) string { return body.ReplaceAllString(s, "$1 this is no C;") }, crash, "the driver refuses its code: the program does not compile"},
		{"it has no such kernel", func(s string) string { return strings.Replace(s, "TILTH_KERNEL(k0_0", "TILTH_KERNEL(k0_9", 1) }, crash, "the program has no such kernel"},
		{"it writes past the end", func(s string) string {
			return body.ReplaceAllString(s, "$1 if (TID == 0) ((__global float *)a2_memory)[1030] = 1;")
		}, crash, "writes 28 bytes past the end of"},
		{"its arguments are exchanged", func(s string) string {
			return regexp.MustCompile(`(?m)^(launch .*) a0 a1 `).ReplaceAllString(s, "$1 a1 a0 ")
		}, wrong, ""},
		{"it hangs", func(s string) string {
			return body.ReplaceAllString(s, "$1 while (*(volatile __global float *)a0_memory == *(volatile __global float *)a0_memory);")
		}, timeout, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.class != wrong && !strings.Contains(c.message, "does not compile") {
				t.Skip("slow: the driver optimises each kernel again")
			}
			if err := os.WriteFile(b.plan.Candidates[0], []byte(resized(t, c.spoil(string(good)))), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.class == timeout {
				b.plan.Limits.Candidate, b.plan.Limits.Compile = 100*time.Millisecond, 2*time.Second
			}
			outcomes, err := b.measure(t)
			if err != nil {
				t.Fatal(err)
			}
			if o := outcomes[b.ids[0]]; o.Error != c.class || !strings.Contains(o.Message, c.message) {
				t.Errorf("%v, %s; want %v, %q", o.Error, o.Message, c.class, c.message)
			}
		})
	}
}

// resized updates the size in a module whose code was changed.
func resized(t *testing.T, module string) string {
	t.Helper()
	head := regexp.MustCompile(`(?m)^code \d+ 0$`).FindStringIndex(module)
	if head == nil {
		t.Fatal("the module has no code")
	}
	code := module[head[1]+1:]
	return fmt.Sprintf("%scode %d 0\n%s", module[:head[0]], len(code), code)
}

// TestWithoutOpenCLNoCandidateIsToBlame checks that the error names what to install.
func TestWithoutOpenCLNoCandidateIsToBlame(t *testing.T) {
	b := newOpenCLBench(t, kerneltest.Product(t, 32, 32, 32), 1)
	for _, c := range []struct {
		name string
		on   backend.Device
		want string
	}{
		{"no library", backend.Device{Driver: filepath.Join(t.TempDir(), "libOpenCL.so.1"), Compiles: true}, "no OpenCL: "},
		{"no such device", backend.Device{Number: 60, Compiles: true}, "there is no OpenCL device 60"},
	} {
		b.plan.Device = &c.on
		if outcomes, err := b.measure(t); err == nil || !strings.Contains(err.Error(), c.want) || len(outcomes) > 0 {
			t.Errorf("%s: the error is %v and the outcomes are %v, want %q", c.name, err, outcomes, c.want)
		}
	}
}
