package runner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// writtenFor returns a candidate of a user kernel for a workload.
func writtenFor(t *testing.T, w *expr.Workload, arch, name, source string) backend.Kernel {
	t.Helper()
	lines := `"` + strings.ReplaceAll(strings.TrimSuffix(w.Text(), "\n"), "\n", `","`) + `"`
	k, err := userkernel.Parse(fmt.Appendf(nil, `{"name":%q,"arch":%q,"numerics":"strict","workloads":[{"text":[%s]}],"source":%q}`, name, arch, lines, source))
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.At(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	if err := s.UseOwn(c); err != nil {
		t.Fatal(err)
	}
	return backend.Kernel{ID: schedule.Digest(s.Trace()), Schedule: s}
}

// Parts of a user kernel for a GPU that computes a product. The fake GPU uses host memory, so host code can do its
// work.
const (
	beginning = "int kernel(const struct tilth_card *card, void *const *args, void *workspace) {\n  const float *a = args[0], *b = args[1];\n  float *out = args[2];\n"
	product   = `
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 48; j++) {
      float sum = 0;
      for (int k = 0; k < 64; k++) sum += a[i * 64 + k] * b[k * 48 + j];
      out[i * 48 + j] = sum;
    }
`
)

// addWritten adds a user kernel's candidate for the GPU.
func (b *deviceBench) addWritten(t *testing.T, w *expr.Workload, k backend.Kernel) {
	t.Helper()
	p, err := modulefile.PrintWritten("k", k, onCard(t).WithBackend(userkernel.Card))
	if err != nil {
		t.Fatal(err)
	}
	module, err := modulefile.WrittenModule(w, []*modulefile.Written{p}, onCard(t))
	if err != nil {
		t.Fatal(err)
	}
	b.add(t, k.ID, module)
}

// addOfProcessor adds a candidate for a processor.
func (b *deviceBench) addOfProcessor(t *testing.T, w *expr.Workload, k backend.Kernel) {
	t.Helper()
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cpu.Backend{}.Print("k", k, on)
	if err != nil {
		t.Fatal(err)
	}
	module, err := cpu.Backend{}.Module(w, []backend.Printed{p}, on)
	if err != nil {
		t.Fatal(err)
	}
	b.add(t, k.ID, module)
}

// TestKernelsForACardRunOnItsHost checks that a correct kernel is timed, and that faulty ones only fail themselves.
func TestKernelsForACardRunOnItsHost(t *testing.T) {
	cases := map[string]struct {
		source  string
		class   tilthv1.ErrorClass
		message string
	}{
		"right":   {beginning + product + "  return card->number != 0 || card->generation != 1;\n}", none, ""},
		"refuses": {beginning + product + "  return 7;\n}", crash, "the kernel returns 7"},
		"dies":    {beginning + product + "  __builtin_trap();\n}", crash, ""},
		"wrong":   {beginning + product + "  out[5] += 1;\n  return 0;\n}", wrong, ""},
		"beyond":  {beginning + product + "  out[32 * 48] = 1;\n  return 0;\n}", crash, "writes 4 bytes past the end of t2"},
		"hangs":   {beginning + product + "  for (;;) __asm__ volatile(\"\" ::: \"memory\");\n}", timeout, ""},
	}
	w := kerneltest.Product(t, 32, 64, 48)
	b := emptyDeviceBench(t, w)
	b.plan.Limits.Candidate = 2 * time.Second
	box, err := sandbox.Open(sandbox.BestEffort, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	b.plan.Sandbox = box
	ids := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		k := writtenFor(t, w, userkernel.Card, name, cases[name].source)
		b.addWritten(t, w, k)
		ids[name] = k.ID
	}
	b.plan.Kernels = b.ids
	outcomes, err := b.measure(t)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		o, found := outcomes[ids[name]]
		if !found || o.Error != c.class || !strings.Contains(o.Message, c.message) || (o.Error == none) != (len(o.Samples) > 0) {
			t.Errorf("%s: %v, %q, %d samples", name, o.Error, o.Message, len(o.Samples))
		}
	}
}

// TestObjectsOfProcessorsAreNotForCards regardless of the builder's metadata.
func TestObjectsOfProcessorsAreNotForCards(t *testing.T) {
	w := kerneltest.Product(t, 32, 64, 48)
	b := emptyDeviceBench(t, w)
	b.addOfProcessor(t, w, writtenFor(t, w, onCard(t).Arch(), "other", "void kernel(const struct tilth_runtime *rt, void *const *args, void *workspace) {}"))
	const want = "the object cannot be loaded: it has no tilth_card_kernels: it is for a processor"
	if outcomes, err := b.measure(t); err == nil || !strings.Contains(err.Error(), want) || len(outcomes) > 0 {
		t.Errorf("%+v, %v", outcomes, err)
	}
}

// TestProcessThatRanHostCodeServesNoOtherPlan because host code may have changed it.
func TestProcessThatRanHostCodeServesNoOtherPlan(t *testing.T) {
	w := kerneltest.Product(t, 32, 64, 48)
	b := emptyDeviceBench(t, w)
	s := &Pool{Idle: time.Hour}
	b.plan.Pool = s
	t.Cleanup(s.Close)
	b.addWritten(t, w, writtenFor(t, w, userkernel.Card, "product", beginning+product+"  return 0;\n}"))
	b.plan.Kernels = b.ids
	for range 2 {
		b.passes(t)
		if slices.ContainsFunc(s.waiting, func(w *worker) bool { return w.served > 0 }) || s.busy != 0 {
			t.Error("a process waits that ran a plan")
		}
	}
}
