package aot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// TestPackagesOfOtherArchitecturesRunUnderAnEmulator makes several runs with different inputs in one process.
func TestPackagesOfOtherArchitecturesRunUnderAnEmulator(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	for name, emulator := range map[string]string{
		"arm32": "qemu-arm -cpu cortex-a7 -L /usr/arm-linux-gnueabihf", "riscv64": "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128 -L /usr/riscv64-linux-gnu",
		"neoverse-v1": "qemu-aarch64 -cpu max,sve256=on,sve512=off -L /usr/aarch64-linux-gnu",
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "riscv64" {
				t.Skip("slow: compiles a package for each architecture")
			}
			board, err := target.Parse(name, 2)
			if err != nil {
				t.Fatal(err)
			}
			there := o
			there.Target, there.Emulator = board, strings.Fields(emulator)
			runs := [][]map[string]*array.Array{{{inputName(p): sample(10, rows, width)}}, {{inputName(p): sample(11, rows, width)}}}
			got, err := RunSeveral(t.Context(), []*program.Program{p}, runs, there, func([]program.Task) ([]Choice, error) { return o.Choices, nil })
			if err != nil {
				t.Fatal(err)
			}
			for k, inputs := range runs {
				want, err := evaluate.Program(p, inputs[0])
				if err != nil {
					t.Fatal(err)
				}
				compare(t, got[k][0], want)
			}
		})
	}
}

// TestPackageIsNotOpenedWithOtherRegistersOfSVE: it would compute wrong results, or crash.
func TestPackageIsNotOpenedWithOtherRegistersOfSVE(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	on, err := target.Parse("neoverse-v1", 2)
	if err != nil {
		t.Fatal(err)
	}
	for cpu, want := range map[string]string{
		"max,sve512=on,sve1024=off": "the code needs SVE registers of 256 bits, and those of this process have 512: compile for this machine",
		"max,sve=off":               "the code needs SVE, which this processor or its kernel does not have: compile for this machine",
	} {
		o.Target, o.Emulator = on, strings.Fields("qemu-aarch64 -cpu "+cpu+" -L /usr/aarch64-linux-gnu")
		_, err := RunOnce(t.Context(), []*program.Program{p}, []map[string]*array.Array{{inputName(p): sample(10, rows, width)}}, o,
			func([]program.Task) ([]Choice, error) { return o.Choices, nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", cpu, err)
		}
	}
}

func TestEmulatorThatDoesNotRunIsNamed(t *testing.T) {
	p := residual(t)
	o := options(t, p)
	o.Emulator = []string{"false"}
	_, err := RunOnce(t.Context(), []*program.Program{p}, []map[string]*array.Array{{inputName(p): sample(10, rows, width)}}, o,
		func([]program.Task) ([]Choice, error) { return o.Choices, nil })
	if err == nil || !strings.Contains(err.Error(), "loading model.so: exit status 1") {
		t.Errorf("got %v", err)
	}
}

// TestProgramsOf32BitsHaveLittleMemory: sizes are checked before they are truncated.
func TestProgramsOf32BitsHaveLittleMemory(t *testing.T) {
	for name, refused := range map[string]bool{"arm32": true, "riscv64": false} {
		on, err := target.Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(on, 5<<30); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
		if err := fits(on, 1<<30); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGuestEndsWithItsContext includes a guest that never answers and writes errors endlessly.
func TestGuestEndsWithItsContext(t *testing.T) {
	script := filepath.Join(t.TempDir(), "endless")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile :; do echo never >&2; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	why := errors.New("nobody waits any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	if _, err := startGuest(ctx, []string{"/bin/sh", script}, &Manifest{}, "", "", 0); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestGuestOutputIsBounded(t *testing.T) {
	var said beginning
	for range 3 {
		if n, err := said.Write(make([]byte, maxSaid)); n != maxSaid || err != nil {
			t.Fatalf("took %d bytes: %v", n, err)
		}
	}
	if len(said.kept) != maxSaid {
		t.Errorf("%d bytes are kept", len(said.kept))
	}
}
