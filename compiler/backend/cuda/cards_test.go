package cuda_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cuda"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/fakedriver"
)

// fake installs a fake driver on this machine.
func fake(t *testing.T) *fakedriver.Driver {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := fakedriver.Make(t.Context(), tc, on, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cuda.DriverVariable, driver.Library())
	return driver
}

func tell(t *testing.T, driver *fakedriver.Driver, what string, number int) {
	t.Helper()
	if err := driver.Tell(what, number); err != nil {
		t.Fatal(err)
	}
}

// TestCardIsChosen selects GPUs by number or UUID, among those that CUDA_VISIBLE_DEVICES shows, and a MIG device by
// UUID. The target then records the UUID.
func TestCardIsChosen(t *testing.T) {
	driver := fake(t)
	tell(t, driver, "devices", 2)
	for _, c := range []struct {
		visible, device string
		slices          int
		id, model, want string
	}{
		{"", "1", 0, fakedriver.ID(1), "Fake GPU 1", ""},
		{"1", "0", 0, fakedriver.ID(1), "Fake GPU 1", ""},
		{fakedriver.ID(1), "GPU-FA4E0001", 0, fakedriver.ID(1), "Fake GPU 1", ""},
		{"1", fakedriver.ID(0), 0, "", "", "no GPU " + fakedriver.ID(0) + "; the driver shows 0 or " + fakedriver.ID(1)},
		{"none", "0", 0, "", "", "no CUDA-capable device is detected"},
		{"", fakedriver.SliceID(1), 2, fakedriver.SliceID(1), "Fake GPU 0 MIG 1g.1gb", ""},
		{fakedriver.SliceID(0), fakedriver.SliceID(1), 2, "", "", "no GPU " + fakedriver.SliceID(1)},
	} {
		t.Run(c.visible+":"+c.device, func(t *testing.T) {
			tell(t, driver, "slices", c.slices)
			if c.visible != "" {
				t.Setenv(cuda.VisibleVariable, c.visible)
			}
			on, err := cuda.Backend{}.Choose("cuda", c.device, 1)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if on.GPU.ID != c.id || on.GPU.Model != c.model {
				t.Errorf("got %+v", on.GPU)
			}
			if d := (cuda.Backend{}).Device(on); d.ID != c.id || d.Visible != c.id || d.Driver != driver.Library() || d.Number != 0 {
				t.Errorf("it is reached by %+v", d)
			}
		})
	}
}

// TestFirstCardIsDescribed checks that the driver describes it, or that the error lists the supported chips.
func TestFirstCardIsDescribed(t *testing.T) {
	driver := fake(t)
	on, err := cuda.Backend{}.Target("cuda", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := target.GPU{ID: fakedriver.ID(0), Arch: "sm_90a", Model: "Fake GPU 0", Multiprocessors: 4, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048,
		ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10, BlockSharedBytes: 227 << 10, MultiprocessorSharedBytes: 228 << 10, L2Bytes: 1 << 20}
	if *on.GPU != want {
		t.Errorf("got %+v", *on.GPU)
	}
	elsewhere, err := target.Decode(on.Encode())
	if err != nil || elsewhere.GPU.ID != "" || elsewhere.Fingerprint() != on.Fingerprint() {
		t.Errorf("elsewhere it is %+v, %v", elsewhere, err)
	}
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	if rates, err := (cuda.Backend{}).Measure(t.Context(), tc, on, t.TempDir(), nil); err != nil || rates.FlopPerSecond <= 0 {
		t.Errorf("its rates are %+v, %v", rates, err)
	}
	tell(t, driver, "devices", 0)
	if _, err := (cuda.Backend{}).Target("cuda", 1); err == nil || !strings.Contains(err.Error(), "no CUDA-capable device") || !strings.Contains(err.Error(), "sm_80") {
		t.Errorf("without a card the error is %v", err)
	}
}

// TestCardsOfOtherGenerations checks that a later GPU is described by its driver, and that an older one is refused
// without affecting other GPUs.
func TestCardsOfOtherGenerations(t *testing.T) {
	driver := fake(t)
	tell(t, driver, "devices", 2)
	tell(t, driver, "capability.0", 75)
	tell(t, driver, "capability.1", 120)
	_, err := cuda.Backend{}.Target("cuda", 1)
	want := "target: Fake GPU 0: its instruction set sm_75 is too old: kernels need sm_80 or newer; choose another card (cuda:NUMBER), or name a chip"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("of an older card it says %v, want %s", err, want)
	}
	on, err := cuda.Backend{}.Choose("cuda", "1", 1)
	if err != nil || on.GPU.Arch != "sm_120" || on.GPU.Warpgroups() || on.Assembled() {
		t.Fatalf("a later card is %+v, %v", on, err)
	}
	on.GPU.Arch = "sm_75"
	if err := (cuda.Backend{}).Check(on); err == nil || !strings.Contains(err.Error(), "sm_80 or newer") {
		t.Errorf("of a description of an older card it says %v", err)
	}
}
