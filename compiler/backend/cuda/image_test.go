package cuda

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/sketch"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// card returns this machine with a named GPU model.
func card(t testing.TB, arch string) *target.Target {
	t.Helper()
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU = &target.GPU{Arch: arch, Model: "none", Multiprocessors: 4, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048,
		ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10, BlockSharedBytes: 227 << 10, MultiprocessorSharedBytes: 228 << 10, L2Bytes: 1 << 20}
	return on
}

// module returns a module with the default candidate of a product.
func module(t testing.TB, arch string) []byte {
	t.Helper()
	return moduleOf(t, arch, array.Float32)
}

func moduleOf(t testing.TB, arch string, d array.DType) []byte {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	w, on := kerneltest.ProductOf(t, d, 64, 64, 64), card(t, arch)
	space := sketch.New(w, on, schedule.Default)
	s, err := space.Apply(space.Default())
	if err != nil {
		t.Fatal(err)
	}
	p, err := modulefile.Print("k0", backend.Kernel{ID: schedule.Digest(s.Trace()), Schedule: s}, on)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "module")
	if err := tc.Build(t.Context(), Module(w, []*modulefile.Printed{p}, on), path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestModulesHaveCodeForTheirCard checks the bound on the threads of blocks, and a version of PTX that the oldest
// assembler used for the GPU supports. Code is architecture-specific only if it has warpgroup instructions, and chips
// unknown to the compiler get code for an older one.
func TestModulesHaveCodeForTheirCard(t *testing.T) {
	t.Setenv(toolchain.AssemblerVariable, "off")
	// The first toolkits by PTX version, from its release notes.
	toolkits := map[string]string{"7.2": "11.2.0", "7.8": "11.8.0", "8.4": "12.4.0"}
	for _, c := range []struct {
		arch, made string
		operands   array.DType
	}{
		{"sm_80", "sm_80", array.Float32}, {"sm_86", "sm_86", array.Float32}, {"sm_89", "sm_89", array.Float32}, {"sm_90a", "sm_90", array.Float32},
		{"sm_90a", "sm_90a", array.BFloat16}, {"sm_120", "sm_90", array.BFloat16},
	} {
		arch := c.made
		code, cubin, ok := toolchaintest.DeviceCode(moduleOf(t, c.arch, c.operands))
		if !ok || len(cubin) > 0 {
			t.Fatalf("a module for %s is none, or has %d bytes of a cubin", arch, len(cubin))
		}
		for _, want := range []string{".target " + arch + "\n", ".maxntid", ".entry k0_0("} {
			if !bytes.Contains(code, []byte(want)) {
				t.Errorf("the code for %s has no %s", arch, want)
			}
		}
		version := regexp.MustCompile(`(?m)^\.version (\S+)$`).FindSubmatch(code)
		if version == nil {
			t.Fatalf("the code for %s has no version", arch)
		}
		first := toolkits[string(version[1])]
		for toolkit, knows := range map[string]bool{first: true, "11.1.105": false, "12.4.131": true, "13.0.88": true} {
			if card(t, arch).Assembles(toolkit) != knows {
				t.Errorf("PTX %s for %s: assembled by %s: %v", version[1], arch, toolkit, !knows)
			}
		}
	}
	for _, text := range []string{"", "tilth-device-module 4\n", "tilth-device-module 4\ncode 9 0\nshort", "tilth-device-module 4\ncode 2 -2\n12", "tilth-device-module 3\ncode 2 0\n12"} {
		if _, _, ok := toolchaintest.DeviceCode([]byte(text)); ok {
			t.Errorf("%q is a module", text)
		}
	}
}

// TestModulesOfEqualTextHaveKeysOfTheirOwn exists because builds are cached by key: candidates with equal text differ
// in id and error growth.
func TestModulesOfEqualTextHaveKeysOfTheirOwn(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	w, on := kerneltest.Product(t, 64, 64, 64), card(t, "sm_80")
	space := sketch.New(w, on, schedule.Default)
	s, err := space.Apply(space.Default())
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, id := range []string{"one", "two"} {
		p, err := modulefile.Print("k0", backend.Kernel{ID: id, Schedule: s}, on)
		if err != nil {
			t.Fatal(err)
		}
		keys[tc.Key(Module(w, []*modulefile.Printed{p}, on))] = true
	}
	if len(keys) != 2 {
		t.Errorf("the modules of two candidates have %d keys", len(keys))
	}
}

// TestWarpgroupsAreForTheChipsThatHaveThem checks that a trace that multiplies by warpgroups is refused before
// compilation.
func TestWarpgroupsAreForTheChipsThatHaveThem(t *testing.T) {
	w := kerneltest.ProductOf(t, array.BFloat16, 256, 256, 256)
	space := sketch.New(w, card(t, "sm_90a"), schedule.Default)
	for _, by := range space.Algorithms() {
		if by.Name == "warpgroup BF16" {
			space = space.Of(by)
		}
	}
	s, err := space.Apply(space.Default())
	if err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]string{"sm_90a": "", "sm_80": "warpgroup products require sm_90a"} {
		_, err := modulefile.Print("k0", backend.Kernel{ID: "k", Schedule: s}, card(t, arch))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arch, err, want)
		}
	}
}

// reader reads files and reports for each whether it is a module.
const reader = `
#include "image.h"
#include <stdio.h>
int main(int argc, char **argv) {
  for (int k = 1; k < argc; k++) {
    char message[512] = "";
    struct image *i = image_read(argv[k], message, sizeof message);
    if (!i && !message[0]) return 1;
    printf("%s\n", i ? "module" : message);
  }
  return 0;
}
`

// TestNoFileBreaksTheReaderOfModules checks that the harness's reader refuses any file with a message or reads it
// within bounds.
func TestNoFileBreaksTheReaderOfModules(t *testing.T) {
	var program strings.Builder
	program.WriteString("#define _GNU_SOURCE\n" + cruntime.Header)
	for _, name := range []string{"tensormap.h", "image.h", "image.c"} {
		for _, f := range modulefile.Sources() {
			if f.Name == name {
				for line := range strings.Lines(f.Text) {
					if !strings.HasPrefix(line, "#include \"") {
						program.WriteString(line)
					}
				}
			}
		}
	}
	program.WriteString(strings.ReplaceAll(reader, "#include \"image.h\"\n", ""))
	run, err := toolchaintest.Program(t, "clang-19", []string{"-std=gnu11", "-O1", "-w", "-fsanitize=undefined", "-fsanitize-trap=undefined"}, program.String())
	if err != nil {
		t.Fatal(err)
	}
	good, boxes := module(t, "sm_80"), moduleOf(t, "sm_90a", array.BFloat16)
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	files := []string{filepath.Join(dir, "good")}
	texts := [][]byte{good, boxes, nil, []byte("\n"), good[:len(good)/2]}
	const right = 2 // of these
	texts = append(texts, withBoxes(t, boxes)...)
	none := len(texts)
	for k := range 800 {
		m := [][]byte{good, boxes}[k%2]
		texts = append(texts, spoilt(rng, m, bytes.Index(m, []byte("code "))))
	}
	for k, text := range texts {
		files = append(files[:k], filepath.Join(dir, fmt.Sprint(k)))
		if err := os.WriteFile(files[k], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), run, files...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("%d answers for %d files", len(lines), len(texts))
	}
	for k, line := range lines[:none] {
		if (line == "module") != (k < right) {
			t.Errorf("of file %d it says %q:\n%.300s", k, line, texts[k])
		}
	}
}

// withBoxes returns modules with tensor maps that no driver accepts, or that exceed their tensors.
func withBoxes(t *testing.T, good []byte) (bad [][]byte) {
	t.Helper()
	at := regexp.MustCompile(`m 4 128 2 64 2 64 64 128 64 a0`).FindIndex(good)
	if at == nil {
		t.Fatalf("there is no such map in\n%.600s", good)
	}
	for _, m := range []string{
		"m 2 128 2 64 2 64 64 128 64 a0", "m 4 48 2 64 2 64 64 128 64 a0", "m 4 64 2 64 2 64 64 128 64 a0", "m 4 128 0 a0", "m 4 128 6 64 2 64 64 128 64 a0",
		"m 4 128 2 64 4 64 64 128 64 a0", "m 4 128 2 64 2 64 64 120 64 a0", "m 4 128 2 64 2 64 65 128 64 a0", "m 4 128 2 65 2 64 64 128 64 a0",
		"m 4 128 2 64 2 64 64 128 0 a0", "m 4 128 2 64 2 64 64 128 257 a0", "m 4 128 2 64 2 64 64 128 64 a9", "m 4 128 2 64 2 64 64 128 64 w0",
		"m 4 128 2 64 2 64 0 128 64 a0", "m 4 128 2 64 2 64 9000000000000000000 1099511627760 64 a0", "m 4 128 2 64 2 64 64 0 64 a0", "m 4 128 2 64 2 64 64 128 64",
	} {
		bad = append(bad, bytes.Join([][]byte{good[:at[0]], []byte(m), good[at[1]:]}, nil))
	}
	return bad
}

// spoilt returns a module with random changes to its table: bytes, numbers, lines.
func spoilt(rng *rand.Rand, good []byte, table int) []byte {
	text := bytes.Clone(good)
	for range 1 + rng.IntN(3) {
		at := rng.IntN(table)
		switch rng.IntN(4) {
		case 0:
			text[at] = byte(rng.IntN(256))
		case 1:
			text = append(text[:at], append([]byte("99999999999999999999"), text[at:]...)...)
		case 2:
			text = append(text[:at], append([]byte("-"), text[at:]...)...)
		default:
			text = append(text[:at], text[min(len(text), at+rng.IntN(20)):]...)
		}
		table = min(table, len(text))
	}
	return text
}
