package board

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/cpu/cruntime"
	"github.com/tilth-dev/tilth/compiler/backend/gpu/modulefile"
	"github.com/tilth-dev/tilth/compiler/boardmonitor"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

var (
	hostileRounds = flag.Int("hostile-rounds", 200, "spoilt streams, and files of each kind, that are read")
	hostileSeed   = flag.Int("hostile-seed", 1, "seed of what spoils them")
)

// TestHostileStreamsAndModulesAreRefused checks that arbitrary input from boards and builders is refused safely.
func TestHostileStreamsAndModulesAreRefused(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	headers := append(append(named(modulefile.Sources(), ".h"), named(modulefile.Files(files, "image/src"), ".h")...), boardmonitor.Protocol(),
		toolchain.File{Name: cruntime.HeaderName, Text: cruntime.Header}, toolchain.File{Name: "bench.h", Text: "double seconds_now(void);\n"})
	for _, h := range headers {
		if err := os.WriteFile(filepath.Join(dir, h.Name), []byte(h.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "hostile_test")
	out, err := exec.CommandContext(t.Context(), "clang-19", "-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-I"+dir, "-Iharness/src", "-o", program, "testdata/hostile_test.c", "harness/src/boardlink.c",
		"harness/src/boardmodule.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := []string{strconv.Itoa(*hostileRounds), strconv.Itoa(*hostileSeed)}
	for _, board := range []string{"cortex-m7", "riscv32"} {
		args = append(args, buildModule(t, tc, board, kerneltest.Product(t, 8, 12, 16)))
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("seed %d: %v: %s", *hostileSeed, err, out)
	}
}
