package boardmonitor

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src
var files embed.FS

// Board is a board with a monitor.
type Board struct {
	// Name is also the identification that its monitor reports.
	Name string
	// Target is the target name of its processor.
	Target string
	// header describes it to the monitor's sources, core and port are those for its processor and serial port; texts.
	header, core, port string
	// rom and ram are the monitor's addresses.
	rom, ram uint32
	// flags are the compiler flags in addition to the target's.
	flags []string
}

// Boards returns the boards with a monitor, by name.
func Boards() []Board {
	return []Board{
		cortexM(Board{Name: "mps2-an500", Target: "cortex-m7", header: text("mps2_an500.h"), port: text(Ports()["cmsdk"]), ram: 0x20000000}),
		cortexM(Board{Name: "mps3-an547", Target: "cortex-m55", header: text("mps3_an547.h"), port: text(Ports()["cmsdk"]), ram: 0x30000000}),
		riscv(Board{Name: "riscv32-virt", Target: "riscv32", header: text("riscv_virt.h"), port: text(Ports()["16550"]), rom: 0x80000000, ram: 0x80010000}),
	}
}

// Ports returns the serial ports with source, by name.
func Ports() map[string]string {
	return map[string]string{"cmsdk": "cmsdk_uart.h", "16550": "ns16550_uart.h"}
}

func cortexM(b Board) Board {
	b.core, b.flags = text("cortexm.c"), []string{"-mfloat-abi=soft"}
	return b
}

func riscv(b Board) Board {
	b.core, b.flags = text("riscv.c"), []string{"-march=rv32imac_zicsr_zifencei", "-mabi=ilp32", "-mcmodel=medany"}
	return b
}

// Description describes a custom board.
type Description struct {
	// Target is the target name of its processor.
	Target string
	// Header is a text like src/mps2_an500.h.
	Header string
	// Port is the name of a serial port or, if empty, PortSource is the C source of another.
	Port, PortSource string
	// ROM and RAM are the monitor's addresses: of its vectors and code, and of its 20 KiB of data and stack.
	ROM, RAM uint32
}

// CustomBoard returns a custom board. The header is responsible for reporting the board's name.
func CustomBoard(name string, d Description) (Board, error) {
	b := Board{Name: name, Target: d.Target, header: d.Header, port: d.PortSource, rom: d.ROM, ram: d.RAM}
	if d.Port != "" {
		file, ok := Ports()[d.Port]
		if !ok {
			return Board{}, fmt.Errorf("unknown serial port %q; use %s, or a .c file", d.Port, strings.Join(slices.Sorted(maps.Keys(Ports())), ", "))
		}
		b.port = text(file)
	}
	if d.Target == "riscv32" {
		return riscv(b), nil
	}
	return cortexM(b), nil
}

// Find returns the named board.
func Find(name string) (Board, error) {
	var names string
	for _, b := range Boards() {
		if b.Name == name {
			return b, nil
		}
		names += " " + b.Name
	}
	return Board{}, fmt.Errorf("no monitor for board %q; want one of%s", name, names)
}

// text returns a source file.
func text(name string) string {
	data, err := files.ReadFile("src/" + name)
	if err != nil {
		panic(err) // embedded
	}
	return string(data)
}

// Protocol returns the header that defines the link protocol.
func Protocol() toolchain.File { return toolchain.File{Name: "link.h", Text: text("link.h")} }

// Build returns the build of a board's monitor: an ELF file for its processor's target.
func (b Board) Build(t *target.Target) toolchain.Build {
	headers := []toolchain.File{
		Protocol(), {Name: "link.ld", Text: text("link.ld")}, {Name: "monitor.h", Text: text("monitor.h")},
		{Name: "board.h", Text: b.header},
	}
	sources := []toolchain.File{
		{Name: "monitor.c", Text: text("monitor.c")}, {Name: "core.c", Text: b.core},
		{Name: "port.c", Text: "#include \"board.h\"\n" + b.port},
	}
	digest := sha256.New()
	for _, f := range append(headers, sources...) {
		fmt.Fprintf(digest, "%s %d %s", f.Name, len(f.Text), f.Text)
	}
	const shown = 8
	// The compiler must not replace copy loops by calls of its own functions, and the monitor must not touch
	// floating-point registers, which it shares with candidates.
	flags := []string{"-fomit-frame-pointer", "-fno-builtin", fmt.Sprintf("-DMONITOR_DIGEST=\"%x\"", digest.Sum(nil)[:shown])}
	return toolchain.Build{
		Target: t, Form: toolchain.Bare, Headers: headers, Sources: sources, Flags: append(flags, b.flags...),
		LinkFlags: []string{"-T", "link.ld", "--nostdlib", fmt.Sprintf("--defsym=rom=%#x", b.rom), fmt.Sprintf("--defsym=ram=%#x", b.ram)},
	}
}

// Digest returns the digest of the sources as the monitor reports it.
func (b Board) Digest(t *target.Target) string {
	for _, flag := range b.Build(t).Flags {
		var digest string
		if n, err := fmt.Sscanf(flag, "-DMONITOR_DIGEST=%q", &digest); err == nil && n == 1 {
			return digest
		}
	}
	return ""
}
