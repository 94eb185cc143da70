package monitor

import (
	"crypto/sha256"
	"embed"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src
var files embed.FS

// Board is a board that there is a monitor for.
type Board struct {
	// Name is also what its monitor says it is.
	Name string
	// Target is the name of the target that its processor is.
	Target string
	// header describes it to the monitor's sources, core and port are those for its processor and serial port.
	header, core, port string
	// rom and ram are where the monitor lies.
	rom, ram uint32
	// flags are the compiler's beside the target's.
	flags []string
}

// Boards are those that there is a monitor for, by name.
func Boards() []Board {
	return []Board{
		{Name: "mps2-an500", Target: "cortex-m7", header: "mps2_an500.h", core: "cortexm.c", port: "cmsdk_uart.h", ram: 0x20000000},
		{Name: "mps3-an547", Target: "cortex-m55", header: "mps3_an547.h", core: "cortexm.c", port: "cmsdk_uart.h", ram: 0x30000000},
		{Name: "riscv32-virt", Target: "riscv32", header: "riscv_virt.h", core: "riscv.c", port: "ns16550_uart.h",
			rom: 0x80000000, ram: 0x80010000, flags: []string{"-march=rv32imac_zicsr_zifencei", "-mabi=ilp32", "-mcmodel=medany"}},
	}
}

// Find is a board by name.
func Find(name string) (Board, error) {
	var names string
	for _, b := range Boards() {
		if b.Name == name {
			return b, nil
		}
		names += " " + b.Name
	}
	return Board{}, fmt.Errorf("there is no monitor for a board %q; there is one for%s", name, names)
}

// text is a source.
func text(name string) string {
	data, err := files.ReadFile("src/" + name)
	if err != nil {
		panic(err) // embedded
	}
	return string(data)
}

// Protocol is the header that says what goes over the link.
func Protocol() toolchain.File { return toolchain.File{Name: "link.h", Text: text("link.h")} }

// Build is the monitor of a board as something to compile: an ELF file for the target of its processor.
func (b Board) Build(t *target.Target) toolchain.Build {
	headers := []toolchain.File{
		Protocol(), {Name: "link.ld", Text: text("link.ld")}, {Name: "monitor.h", Text: text("monitor.h")},
		{Name: "board.h", Text: text(b.header)},
	}
	sources := []toolchain.File{
		{Name: "monitor.c", Text: text("monitor.c")}, {Name: "core.c", Text: text(b.core)},
		{Name: "port.c", Text: "#include \"board.h\"\n" + text(b.port)},
	}
	digest := sha256.New()
	for _, f := range append(headers, sources...) {
		fmt.Fprintf(digest, "%s %d %s", f.Name, len(f.Text), f.Text)
	}
	const shown = 8
	// The compiler makes no calls of its own functions for loops that copy, and the monitor, which shares its
	// processor's registers of floats with candidates, touches none.
	flags := []string{"-fomit-frame-pointer", "-fno-builtin", fmt.Sprintf("-DMONITOR_DIGEST=\"%x\"", digest.Sum(nil)[:shown])}
	if b.core == "cortexm.c" {
		flags = append(flags, "-mfloat-abi=soft")
	}
	return toolchain.Build{
		Target: t, Form: toolchain.Bare, Headers: headers, Sources: sources, Flags: append(flags, b.flags...),
		LinkFlags: []string{"-T", "link.ld", "--nostdlib", fmt.Sprintf("--defsym=rom=%#x", b.rom), fmt.Sprintf("--defsym=ram=%#x", b.ram)},
	}
}

// Digest is what the monitor says its sources are.
func (b Board) Digest(t *target.Target) string {
	for _, flag := range b.Build(t).Flags {
		var digest string
		if n, err := fmt.Sscanf(flag, "-DMONITOR_DIGEST=%q", &digest); err == nil && n == 1 {
			return digest
		}
	}
	return ""
}
