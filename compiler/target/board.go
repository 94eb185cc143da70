package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// boards are the microcontrollers known by name. A Cortex-M4 has no cache: its memory is as near as one. The sizes of
// others are those that many boards have: 16 KiB on STM32H7 and i.MX RT, 32 KiB on the boards of a Cortex-M55. The
// last is any RISC-V of 32 bits with a unit for float32.
var boards = map[string]CPU{
	"cortex-m4":  {Arch: ARMV7EM, Features: []string{}, L1DataBytes: 64 << 10, CacheLineBytes: 16},
	"cortex-m7":  {Arch: ARMV7EM, Features: []string{"fp64"}, L1DataBytes: 16 << 10, CacheLineBytes: 32},
	"cortex-m55": {Arch: ARMV8M, Features: []string{"mve"}, L1DataBytes: 32 << 10, CacheLineBytes: 32},
	"riscv32":    {Arch: RISCV32, Features: []string{}, L1DataBytes: 16 << 10, CacheLineBytes: 32},
}

// Boards are the names of the microcontrollers that Board knows.
func Boards() []string { return slices.Sorted(maps.Keys(boards)) }

// Board is a microcontroller by name, for a backend. It has one core, and no system that others would run on.
func Board(name, backend string, threads int) (*Target, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	c, ok := boards[name]
	if !ok {
		return nil, fmt.Errorf("target: %q is none of %s", name, strings.Join(Boards(), ", "))
	}
	if threads > 1 {
		return nil, fmt.Errorf("target: %d threads asked for, but %s runs one; leave --threads out", threads, name)
	}
	c.Features = slices.Clone(c.Features)
	c.Model, c.Cores, c.Threads = generic, 1, 1
	if strings.HasPrefix(name, "cortex-") {
		c.Model = name
	}
	c.setVectors()
	return &Target{Backend: backend, CPU: &c}, nil
}

// IsBare reports whether programs for the target run without an operating system.
func (t *Target) IsBare() bool { return t.CPU.isBare() }

func (c *CPU) isBare() bool { return arches[c.Arch].bare }

// microcontroller are the compilers' flags for a Cortex-M: they know its pipeline by the name of a processor.
func (c *CPU) microcontroller() []string {
	switch {
	case c.Has("mve"):
		return []string{"-mcpu=cortex-m55", "-mfloat-abi=hard"}
	case c.Arch == ARMV8M: // vectors are an option of it
		return []string{"-mcpu=cortex-m55+nomve", "-mfloat-abi=hard"}
	case c.Has("fp64"):
		return []string{"-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"}
	}
	return []string{"-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"}
}
