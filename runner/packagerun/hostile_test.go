package packagerun

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/npz"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/sandbox"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// Attacks of testdata/hostile.c: those that fail in a sandbox, those that are limited, and those that end their
// process.
var (
	harmless = []string{"forks", "executes", "fills_disk", "calls_network", "reads_files", "changes_files", "signals", "traces", "gains", "leaves_things",
		"uses_the_kernel", "dumps_core", "finds_descriptors"}
	greedy = []string{"takes_threads", "takes_memory", "takes_disk"}
	fatal  = []string{"loops", "floods", "complains", "paints", "forges", "closes_all", "crashes"}
)

// hostile is the package of testdata/hostile.c with its victims.
type hostile struct {
	executor *Executor
	pkg      string
	ways     []string
	token    string
	sleeper  *os.Process
}

// newHostile prepares the package. loaded is the number of attacks that run when the package is loaded.
func newHostile(t *testing.T, mode sandbox.Mode, role string, loaded int) *hostile {
	t.Helper()
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	dir := t.TempDir()
	h := &hostile{executor: executor(t, mode, role), pkg: filepath.Join(dir, "hostile.tar"), token: filepath.Join(dir, "token"), sleeper: sleeper.Process}
	if err := os.WriteFile(h.token, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.ways = append(append(append(h.ways, harmless...), greedy...), fatal...)
	tc, machine := toolchaintest.Native(t, 1)
	source, err := os.ReadFile("testdata/hostile.c")
	if err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(dir, "model.so")
	err = tc.Build(t.Context(), toolchain.Build{Target: machine, Form: toolchain.Library, Sources: []toolchain.File{{Name: "hostile.c", Text: string(source)}},
		Headers: []toolchain.File{cruntime.Interface()}, Flags: []string{fmt.Sprintf("-DVICTIM=%d", sleeper.Process.Pid),
			fmt.Sprintf("-DTOKEN=%q", h.token), fmt.Sprintf("-DHARMLESS=%d", loaded), "-DWAYS=W(" + strings.Join(h.ways, "),W(") + ")"}}, object)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	h.pack(t, machine, code)
	return h
}

// pack writes the package.
func (h *hostile) pack(t *testing.T, machine *target.Target, code []byte) {
	t.Helper()
	manifest := &aot.Manifest{Format: aot.Format, Model: "hostile", Target: machine,
		Inputs: []aot.Tensor{{Name: "way", DType: "i32", Shape: []int64{1}}}, Outputs: []aot.Tensor{{Name: "harm", DType: "f32", Shape: []int64{1}}}}
	for name, data := range map[string][]byte{"model.so": code, "weights.bin": nil} {
		manifest.Members = append(manifest.Members, aot.Member{Name: name, SizeBytes: int64(len(data)), CRC32C: crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))})
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, data := range map[string][]byte{"model.so": code, "weights.bin": nil, "manifest.json": text} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(h.pkg, archive.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// try runs one of the package's attacks and returns its output.
func (h *hostile) try(t *testing.T, way string, limits Limits) (harm float64, err error) {
	t.Helper()
	dir := t.TempDir()
	inputs, outputs := filepath.Join(dir, "in.npz"), filepath.Join(dir, "out.npz")
	number := array.New(array.Int32, 1)
	for k, name := range h.ways {
		if name == way {
			binary.NativeEndian.PutUint32(number.Data, uint32(k))
		}
	}
	file, err := os.Create(inputs)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(npz.Write(file, map[string]*array.Array{"way": number}), file.Close(), os.WriteFile(outputs, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	request := Request{Packages: []Package{{Path: h.pkg, Name: "hostile.tar"}}, Inputs: inputs, Outputs: outputs}
	_, err = h.executor.Run(t.Context(), request, limits)
	if info, statErr := os.Stat(outputs); statErr != nil || info.Size() > limits.withDefaults().OutputBytes {
		t.Errorf("outputs of %d bytes, %v", info.Size(), statErr)
	}
	if err != nil {
		return 0, err
	}
	written, err := npz.ReadFile(outputs)
	if err != nil {
		return 0, err
	}
	return float64(math.Float32frombits(binary.NativeEndian.Uint32(written["harm"].Data))), nil
}

// TestHostilePackagesDoHarmWithoutASandbox validates the test below, which would otherwise prove nothing.
func TestHostilePackagesDoHarmWithoutASandbox(t *testing.T) {
	h := newHostile(t, sandbox.Off, "unsealed", 0)
	for _, way := range []string{"forks", "calls_network", "reads_files", "dumps_core", "uses_the_kernel"} {
		if harm, err := h.try(t, way, Limits{}); err != nil || harm == 0 {
			t.Errorf("%s does nothing: %v", way, err)
		}
	}
	if _, err := h.try(t, "executes", Limits{}); err == nil {
		t.Error("executes runs nothing else")
	}
	h = newHostile(t, sandbox.Off, "serves", 0)
	for _, way := range []string{"forks", "executes", "fills_disk", "calls_network", "signals", "traces", "uses_the_kernel", "dumps_core"} {
		if harm, err := h.try(t, way, Limits{}); err != nil || harm != 0 {
			t.Errorf("sealed, but in no sandbox, %s did %v, %v", way, harm, err)
		}
	}
}

// TestHostilePackagesHarmOnlyTheirProcess checks that each attack fails, is limited, or ends its process.
func TestHostilePackagesHarmOnlyTheirProcess(t *testing.T) {
	h := newHostile(t, sandbox.BestEffort, "serves", len(harmless))
	if missing := h.executor.Sandbox.Missing(); len(missing) > 0 {
		t.Skipf("this kernel lacks layers: %s", strings.Join(missing, "; "))
	}
	for _, way := range harmless {
		t.Run(way, func(t *testing.T) {
			if harm, err := h.try(t, way, Limits{}); err != nil || harm != 0 {
				t.Errorf("did %v, %v", harm, err)
			}
		})
	}
	limits := Limits{MemoryBytes: 512 << 20, OutputBytes: 1 << 20}
	for way, limit := range map[string]float64{
		"takes_threads": float64(target.Processors() + sandbox.SpareThreads),
		"takes_memory":  (512<<20 + sandbox.ReservedBytes) >> 20,
		"takes_disk":    0,
	} {
		t.Run(way, func(t *testing.T) {
			got, err := h.try(t, way, limits)
			if failure := (&Failure{}); errors.As(err, &failure) {
				return // no memory was left for its outputs or for the runtime
			}
			if err != nil || got > limit {
				t.Errorf("took %v, %v; want at most %v", got, err, limit)
			}
		})
	}
	for way, want := range map[string]string{
		"loops":      "takes longer than 2s: allow more time, or ask for fewer executions",
		"floods":     "crashes: floods its output",
		"complains":  "crashes: floods its output",
		"paints":     "crashes: exits with status 9 ",
		"forges":     "crashes: exits with status 0",
		"closes_all": "crashes: exits with status",
		"crashes":    "crashes: ",
	} {
		t.Run(way, func(t *testing.T) {
			limits := Limits{}
			if way == "loops" {
				limits.Time = 2 * time.Second
			}
			_, err := h.try(t, way, limits)
			if failure := (&Failure{}); !errors.As(err, &failure) || !strings.HasPrefix(failure.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			} else if unprintable := func(r rune) bool { return !unicode.IsPrint(r) }; strings.ContainsFunc(failure.Error(), unprintable) {
				t.Errorf("a terminal would be painted on by %q", failure.Error())
			}
		})
	}
	if err := h.sleeper.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a package killed another process: %v", err)
	}
	if text, err := os.ReadFile(h.token); err != nil || string(text) != "secret" {
		t.Errorf("a package changed a file: %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(h.executor.Scratch, "*")); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch folder: %v, %v", left, err)
	}
}
