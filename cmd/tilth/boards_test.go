package main

import (
	"context"
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/npz"
)

// TestFarmTunesForAnEmulatedBoard compiles a package with the board's measurements. The package must compute the
// same on the board as one for this machine does here. 'make farm-boards' also emulates the runners.
func TestFarmTunesForAnEmulatedBoard(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: runs a farm of processes that measures under an emulator")
	}
	t.Parallel() // mostly waits for processes
	ctx, cancel := context.WithTimeout(t.Context(), farmDeadline)
	defer cancel()
	const emulator = "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128 -L /usr/riscv64-linux-gnu"
	if _, err := exec.LookPath("qemu-riscv64"); err != nil {
		t.Fatalf("there is no emulator: %v: run scripts/packages.sh test", err)
	}
	f := newFarmUnderTest(t)
	f.more = map[string][]string{"runner": {"--target", "riscv64", "--emulator", emulator}}
	f.launchAll()
	f.awaitAgents(ctx)
	model, here, there := filepath.Join(f.dir, "mlp.onnx"), filepath.Join(f.dir, "here.tar"), filepath.Join(f.dir, "there.tar")
	f.tilth(ctx, "model", "mlp", "-o", model).mustRun()
	f.tilth(ctx, "tune", model, "--tracker", f.tracker, "--device", "emulator=qemu-riscv64", "--threads", "1", "--tasks", "0", "--trials", "4").mustRun()

	compile := f.tilth(ctx, "compile", model, "--tracker", f.tracker, "--target", "riscv64", "--threads", "1", "-o", there, "--json")
	compile.mustRun()
	var compiled compileResult
	if err := json.Unmarshal(compile.stdout.Bytes(), &compiled); err != nil || compiled.Tuned == 0 {
		t.Fatalf("%d tasks have records: %v", compiled.Tuned, err)
	}
	f.tilth(ctx, "compile", model, "--untuned", "--threads", "1", "-o", here).mustRun()
	f.tilth(ctx, "run", here, "--outputs", here+".npz").mustRun()
	f.tilth(ctx, "run", there, "--emulator", emulator, "--outputs", there+".npz").mustRun()
	want, err := npz.ReadFile(here + ".npz")
	if err != nil {
		t.Fatal(err)
	}
	got, err := npz.ReadFile(there + ".npz")
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range want {
		b := got[name]
		if b == nil || len(b.Float32s()) != len(a.Float32s()) {
			t.Fatalf("the board's package has no such output %s", name)
		}
		for k, x := range a.Float32s() {
			if y := b.Float32s()[k]; math.Abs(float64(x-y)) > 1e-4+1e-3*math.Abs(float64(x)) {
				t.Fatalf("%s[%d] is %v on the board, and %v here", name, k, y, x)
			}
		}
	}
}
