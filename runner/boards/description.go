package boards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/compiler/boardmonitor"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Description describes how to reach a board: by a TTY, or by a command that has the link as descriptor 3.
type Description struct {
	// Name is the name that the board's monitor must report; empty accepts any.
	Name string `json:"name,omitempty"`
	// Target is the name of the board's target.
	Target string `json:"target"`
	// TTY is the path of a serial line. Baud is its speed, by default 115200.
	TTY  string `json:"tty,omitempty"`
	Baud uint32 `json:"baud,omitempty"`
	// Command runs or reaches the board: an emulator, or a program that forwards the link. The word {monitor}
	// is replaced by the path of the board's monitor, which is built for it.
	Command []string `json:"command,omitempty"`
	// Reset is a command that resets the board. Without it, the command is restarted.
	Reset []string `json:"reset,omitempty"`
	// Emulator is set for an emulated board, which counts instructions instead of time.
	Emulator bool `json:"emulator,omitempty"`
}

// emulated describes QEMU's boards. A shift of N makes an instruction take 1<<N ns of the board's time, about
// a tick of its timer, so that the timer counts instructions.
func emulated() map[string]Description {
	qemu := func(program, machine, shift string, more ...string) []string {
		return append([]string{program, "-M", machine, "-icount", "shift=" + shift + ",sleep=off", "-display", "none", "-nodefaults",
			"-sandbox", "on", "-chardev", "socket,id=link,fd=3", "-serial", "chardev:link"}, more...)
	}
	return map[string]Description{
		"mps2-an500":   {Target: "cortex-m7", Command: qemu("qemu-system-arm", "mps2-an500", "5", "-kernel", monitorWord)},
		"mps3-an547":   {Target: "cortex-m55", Command: qemu("qemu-system-arm", "mps3-an547", "5", "-kernel", monitorWord)},
		"riscv32-virt": {Target: "riscv32", Command: qemu("qemu-system-riscv32", "virt", "0", "-m", "64", "-bios", monitorWord)},
	}
}

// monitorWord stands for the monitor's path.
const monitorWord = "{monitor}"

// Names returns the boards that need no file.
func Names() (names []string) {
	for _, b := range boardmonitor.Boards() {
		names = append(names, b.Name)
	}
	return names
}

// maxDescriptionBytes bounds a description file.
const maxDescriptionBytes = 64 << 10

// Find returns a board by its name or by the path of a JSON description.
func Find(name string) (Description, error) {
	if d, ok := emulated()[name]; ok {
		d.Name, d.Emulator = name, true
		return d, nil
	}
	if !target.IsFile(name) {
		return Description{}, fmt.Errorf("board %q is not known; use %s, or the path of a .json file", name, strings.Join(Names(), ", "))
	}
	info, err := os.Stat(name)
	if err != nil {
		return Description{}, fmt.Errorf("board: %w", err)
	}
	if info.Size() > maxDescriptionBytes {
		return Description{}, fmt.Errorf("board: %s has %d bytes; a description has at most %d", name, info.Size(), maxDescriptionBytes)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return Description{}, fmt.Errorf("board: %w", err)
	}
	var d Description
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return Description{}, fmt.Errorf("board: %s: %w", name, err)
	}
	if err := d.check(); err != nil {
		return Description{}, fmt.Errorf("board: %s: %w", name, err)
	}
	return d, nil
}

func (d Description) check() error {
	switch {
	case d.Target == "":
		return fmt.Errorf("it says no target; want one of %s", strings.Join(target.Boards(), ", "))
	case (d.TTY == "") == (len(d.Command) == 0):
		return fmt.Errorf("a board has either a tty or a command")
	case d.TTY == "" && d.Baud != 0:
		return fmt.Errorf("baud is for a tty")
	}
	return nil
}
