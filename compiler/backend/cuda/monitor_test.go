package cuda_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/fakedriver"
)

// watched returns the monitor of a machine's GPU.
func watched(t *testing.T, device string) backend.Monitor {
	t.Helper()
	on, err := cuda.Backend{}.Choose("cuda", device, 1)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	m, err := cuda.Backend{}.Monitor(t.Context(), tc, on, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func reading(t *testing.T, m backend.Monitor) backend.Reading {
	t.Helper()
	l, err := m.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMonitorReportsTimesAndHealth covers temperature, clocks, slowdowns and memory errors. A GPU at its power cap is
// not impaired.
func TestMonitorReportsTimesAndHealth(t *testing.T) {
	driver := fake(t)
	library, err := driver.MakeHealth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cuda.HealthVariable, library)
	m := watched(t, "0")
	l := reading(t, m)
	h := l.Health
	if len(l.Compute) != 15 || len(l.Memory) != 15 || slices.Min(l.Compute) <= 0 || slices.Min(l.Memory) <= 0 || h.Unknown != "" {
		t.Errorf("it saw %+v", l)
	}
	if !slices.Equal(h.Celsius, []float64{57}) || h.Slowed == nil || *h.Slowed || *h.Errors != (backend.MemoryErrors{}) || len(h.Impairments) > 0 ||
		!slices.Equal(h.Clocks, []backend.DeviceClock{{Part: "multiprocessors", Hertz: 1.98e9, Max: 1.98e9}, {Part: "memory", Hertz: 2.619e9, Max: 2.619e9}}) {
		t.Errorf("a card that is well: %+v", h)
	}
	for _, c := range []struct {
		name   string
		number int
		want   string
		slowed bool
	}{
		{"reasons", 0x1, "", false}, {"reasons", 0x4, "", true}, {"reasons", 0x44, "is slowed down to cool", true},
		{"reasons", 0x8, "is slowed down by its hardware", true}, {"reasons", 0x88, "is slowed down by its power supply", true},
		{"reasons", 0xe8, "is slowed down to cool, is slowed down by its power supply", true},
		{"corrected", 3, "", false}, {"uncorrected", 2, "has 2 uncorrected errors in its memory since its driver started (reset it)", false},
		{"uncorrected", -1, "", false},
	} {
		tell(t, driver, c.name, c.number)
		h := reading(t, m).Health
		if got := strings.Join(h.Impairments, ", "); got != c.want || *h.Slowed != c.slowed || (h.Errors == nil) != (c.number < 0) {
			t.Errorf("%s %#x: %+v, want %q", c.name, c.number, h, c.want)
		}
		if err := driver.Forget(c.name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMonitorWithoutHealth checks that times are still reported without a library, or if it does not know the GPU.
// Without a GPU there is an error.
func TestMonitorWithoutHealth(t *testing.T) {
	driver := fake(t)
	tell(t, driver, "slices", 2)
	m := watched(t, fakedriver.SliceID(1))
	t.Setenv(cuda.HealthVariable, filepath.Join(t.TempDir(), "libnvidia-ml.so.1"))
	if l := reading(t, m); !strings.Contains(l.Health.Unknown, "libnvidia-ml.so.1: cannot open") || len(l.Compute) != 15 {
		t.Errorf("without a library it saw %+v", l)
	}
	library, err := driver.MakeHealth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cuda.HealthVariable, library)
	if h := reading(t, m).Health; !slices.Equal(h.Celsius, []float64{57}) {
		t.Errorf("the health of a slice is %+v, want its card's", h)
	}
	tell(t, driver, "devices", 0)
	if l, err := m.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "reading the card: no CUDA-capable device") {
		t.Errorf("without a card it saw %+v, %v", l, err)
	}
}

// TestMonitorUnloadsTimedModules checks that code is unloaded, so that the next module fits where there is room for
// one.
func TestMonitorUnloadsTimedModules(t *testing.T) {
	driver := fake(t)
	tell(t, driver, "modules", 1)
	reading(t, watched(t, "0"))
}
