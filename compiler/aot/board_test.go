package aot

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// emulated lists the emulated boards: the emulator's command, the linker script and the start-up code.
var emulated = map[string]struct {
	emulator      []string
	script, start string
}{
	"cortex-m4":  {[]string{"qemu-system-arm", "-M", "mps2-an386"}, "mps2-an500.ld", "start_arm.c"},
	"cortex-m7":  {[]string{"qemu-system-arm", "-M", "mps2-an500"}, "mps2-an500.ld", "start_arm.c"},
	"cortex-m55": {[]string{"qemu-system-arm", "-M", "mps3-an547"}, "mps3-an547.ld", "start_arm.c"},
	"riscv32":    {[]string{"qemu-system-riscv32", "-M", "virt", "-bios", "none"}, "virt.ld", "start_riscv.c"},
}

// compilers returns the compilers other than clang that build an archive's firmware, with their flags.
func compilers(o Options, board, files, script string) map[string][]string {
	link := "-Wl,--gc-sections,-L" + files + ",-T," + script
	source := append(toolchain.SourceFlags(o.Target, cFlags), "-nostdlib", "-static", link)
	list := map[string][]string{"clang": append(append([]string{o.Toolchain.Path()}, o.Target.ClangFlags()...), append(source, "-fuse-ld=lld")...)}
	if strings.HasPrefix(board, "cortex-m") {
		list["gcc"] = append(append([]string{"arm-none-eabi-gcc"}, o.Target.GCCFlags()...), source...)
	}
	return list
}

// TestBoardsComputeWhatAPackageDoes builds firmware from an archive with a plain compiler, and compares its outputs
// under an emulator with those of a package for this machine.
func TestBoardsComputeWhatAPackageDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: compiles each model for each board with two compilers, and runs them under emulators")
	}
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
				o := sourceOptions(t, p, board(t, name))
				manifest, err := Compile(t.Context(), p, o)
				if err != nil {
					t.Fatal(err)
				}
				want := here(t, p)
				t.Logf("RAM %d, of which stack %d, flash %d bytes, of which code %d", manifest.C.RAMBytes, manifest.C.StackBytes, manifest.C.FlashBytes, manifest.C.CodeBytes)
				for compiler, build := range compilers(o, name, files, b.script) {
					t.Run(compiler, func(t *testing.T) {
						if _, err := exec.LookPath(build[0]); err != nil {
							t.Skipf("%s is missing: make test-bare installs it", build[0])
						}
						dir := unpackSource(t, o.Output)
						build = append(build, "-I.", "-I"+files, "-o", "net.elf", filepath.Join(files, b.start), "main.c", "net.c", "net_kernels.c", "net_libc.c", "net_weights.c")
						if compiler == "gcc" {
							build = append(build, "-lgcc")
						}
						command(t, dir, build[0], build[1:]...)
						run := append(b.emulator[1:len(b.emulator):len(b.emulator)], "-display", "none", "-serial", "none", "-monitor", "none", "-chardev", "stdio,id=out",
							"-semihosting-config", "enable=on,target=native,chardev=out", "-icount", "shift=0", "-kernel", "net.elf")
						t.Logf("%d instructions", compareWords(t, command(t, dir, b.emulator[0], run...), want))
					})
				}
			})
		}
	}
}
