package aot

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// emulated are the boards that an emulator plays: its command, what links a program for it, and what starts one.
var emulated = map[string]struct {
	emulator      []string
	script, start string
}{
	"cortex-m4":  {[]string{"qemu-system-arm", "-M", "mps2-an386"}, "mps2-an500.ld", "start_arm.c"},
	"cortex-m7":  {[]string{"qemu-system-arm", "-M", "mps2-an500"}, "mps2-an500.ld", "start_arm.c"},
	"cortex-m55": {[]string{"qemu-system-arm", "-M", "mps3-an547"}, "mps3-an547.ld", "start_arm.c"},
	"riscv32":    {[]string{"qemu-system-riscv32", "-M", "virt", "-bios", "none"}, "virt.ld", "start_riscv.c"},
}

// TestBoardsComputeWhatAPackageDoes: clang alone makes a firmware of an archive. Its outputs under an emulator of the
// board are those of a package for this machine.
func TestBoardsComputeWhatAPackageDoes(t *testing.T) {
	files, err := filepath.Abs(filepath.Join("testdata", "board"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range emulated {
		for model, make := range small {
			t.Run(name+"/"+model, func(t *testing.T) {
				if _, err := exec.LookPath(b.emulator[0]); err != nil {
					t.Skipf("%s is missing: make test-bare installs it", b.emulator[0])
				}
				p := imported(t, make())
				on := board(t, name)
				o := sourceOptions(t, p, on)
				manifest, err := Compile(t.Context(), p, o)
				if err != nil {
					t.Fatal(err)
				}
				dir := unpackSource(t, o.Output)
				args := append(on.ClangFlags(), toolchain.SourceFlags(on, cFlags)...)
				args = append(args, "-I.", "-I"+files, "-nostdlib", "-static", "-fuse-ld=lld", "-Wl,--gc-sections,-L"+files+",-T,"+b.script, "-o", "net.elf",
					filepath.Join(files, b.start), "main.c", "net.c", "net_kernels.c", "net_libc.c", "net_weights.c")
				command(t, dir, o.Toolchain.Path(), args...)
				run := append(b.emulator[1:len(b.emulator):len(b.emulator)], "-display", "none", "-serial", "none", "-monitor", "none", "-chardev", "stdio,id=out", "-semihosting-config", "enable=on,target=native,chardev=out",
					"-icount", "shift=0", "-kernel", "net.elf")
				instructions := compareWords(t, command(t, dir, b.emulator[0], run...), here(t, p))
				t.Logf("%d instructions; RAM %d, of which stack %d, flash %d bytes, of which code %d", instructions, manifest.C.RAMBytes, manifest.C.StackBytes, manifest.C.FlashBytes, manifest.C.CodeBytes)
			})
		}
	}
}
