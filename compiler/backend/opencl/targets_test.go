package opencl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// said is the program's description of a device, one property per line.
var said = []string{"Platform", " Device 9 ", "7.1", "OpenCL 3.0 x", "cl_khr_fp64 cl_b  cl_a", "4", "8", "4096", "65536", "0"}

// TestDeviceIsDescribed checks that the driver's description is limited to what kernels support.
func TestDeviceIsDescribed(t *testing.T) {
	got, err := described(strings.Join(said, "\n") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	want := target.GPU{Arch: "opencl", Model: "Device 9", Driver: "Platform, 7.1, OpenCL 3.0 x", Extensions: "cl_a cl_b cl_khr_fp64", Multiprocessors: 8,
		WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048, ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10,
		BlockSharedBytes: 64 << 10, MultiprocessorSharedBytes: 64 << 10, L2Bytes: 1}
	if *got != want {
		t.Errorf("got %+v", *got)
	}
}

// TestDeviceThatSaysTooLittleIsRefused expects a one-line error.
func TestDeviceThatSaysTooLittleIsRefused(t *testing.T) {
	saying := func(line int, text string) string {
		return strings.Join(slices.Concat(said[:line], []string{text}, said[line+1:]), "\n")
	}
	for text, want := range map[string]string{
		strings.Join(said[:7], "\n"): "returned 7 fields, want 10",
		saying(6, "many"):            `returned "many", want a number`,
		saying(7, "16"):              "its work-groups have at most 16 work-items, and kernels need 32",
	} {
		if _, err := described(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestBuildersNeedNoDevice checks that text is stored unchanged once it compiles, and that errors for the device's
// extensions are reported.
func TestBuildersNeedNoDevice(t *testing.T) {
	t.Setenv(LibraryVariable, "nowhere.so")
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	const doubles = "TILTH_KERNEL(k, 1)(GLOBAL double *restrict y) {\n  GLOBAL_ARRAY(y, 1);\n  STORE(y, 0, tilth_exp(LOAD(y, 0)));\n}\n"
	for _, c := range []struct {
		name, kernels, extensions string
		compiles                  bool
	}{
		{"doubles on a device that has them", doubles, "cl_khr_fp64", true},
		{"doubles on another", doubles, "cl_khr_fp16", false},
		{"what is no kernel", "TILTH_KERNEL(", "cl_khr_fp64", false},
	} {
		on.GPU = &target.GPU{Arch: target.OpenCL, Extensions: c.extensions}
		path := filepath.Join(t.TempDir(), "code")
		err := tc.Build(t.Context(), code(c.kernels, on), path)
		var failure *toolchain.Error
		if c.compiles && err != nil || !c.compiles && (!errors.As(err, &failure) || failure.Kind != toolchain.Rejected) {
			t.Errorf("%s: the error is %v", c.name, err)
		}
		if text, err := os.ReadFile(path); c.compiles && (err != nil || !strings.Contains(string(text), "STORE(y, 0,")) {
			t.Errorf("%s: the text is not kept: %v", c.name, err)
		}
	}
}
