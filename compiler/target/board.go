package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// boards holds the microcontrollers known by name. A Cortex-M4 has no cache, but its memory is as fast as one.
// Cache sizes of the others are common ones: 16 KiB on STM32H7 and i.MX RT, 32 KiB on boards with a Cortex-M55. The
// last entry is any 32-bit RISC-V with a float32 unit.
var boards = map[string]CPU{
	"cortex-m4":  {Arch: ARMV7EM, Features: []string{}, L1DataBytes: 64 << 10, CacheLineBytes: 16},
	"cortex-m7":  {Arch: ARMV7EM, Features: []string{"fp64"}, L1DataBytes: 16 << 10, CacheLineBytes: 32},
	"cortex-m55": {Arch: ARMV8M, Features: []string{"mve"}, L1DataBytes: 32 << 10, CacheLineBytes: 32},
	"riscv32":    {Arch: RISCV32, Features: []string{}, L1DataBytes: 16 << 10, CacheLineBytes: 32},
}

// Boards returns the names that Board accepts.
func Boards() []string { return slices.Sorted(maps.Keys(boards)) }

// Board returns the named microcontroller as a target of a backend. It has one core and no operating system.
func Board(name, backend string, threads int) (*Target, error) {
	if err := checkThreads(threads); err != nil {
		return nil, err
	}
	c, ok := boards[name]
	if !ok {
		return nil, fmt.Errorf("target: unknown target %q", name)
	}
	if threads > 1 {
		return nil, fmt.Errorf("target: %d threads asked for, but %s runs one: %w", threads, name, ErrThreads)
	}
	c.Features = slices.Clone(c.Features)
	c.Model, c.Cores, c.Threads = generic, 1, 1
	if strings.HasPrefix(name, "cortex-") {
		c.Model = name
	}
	c.setVectors()
	return &Target{Backend: backend, CPU: &c}, nil
}

func (c *CPU) isBare() bool { return arches[c.Arch].bare }

// microcontroller returns compiler flags for a Cortex-M, which identify the pipeline by a processor name.
func (c *CPU) microcontroller() []string {
	switch {
	case c.Has("mve"):
		return []string{"-mcpu=cortex-m55", "-mfloat-abi=hard"}
	case c.Arch == ARMV8M: // vectors are optional on it
		return []string{"-mcpu=cortex-m55+nomve", "-mfloat-abi=hard"}
	case c.Has("fp64"):
		return []string{"-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"}
	}
	return []string{"-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"}
}
