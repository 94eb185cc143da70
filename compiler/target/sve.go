package target

import (
	"errors"
	"fmt"
)

// sveLengths maps features to SVE register lengths in bytes. Code for one length is wrong for any other, including
// longer ones, so a processor has at most one of these features: none if the length is that of Neon or not a power
// of two.
var sveLengths = map[string]int{"sve256": 32, "sve512": 64, "sve1024": 128}

// sveBytes returns the SVE register length in bytes; 0 if code does not depend on it.
func (c *CPU) sveBytes() int {
	for _, f := range c.Features {
		if bytes := sveLengths[f]; bytes > 0 {
			return bytes
		}
	}
	return 0
}

// SVEBytes returns the SVE register length in bytes that code for the target assumes; 0 if it assumes none.
func (t *Target) SVEBytes() int { return t.CPU.sveBytes() }

// checkLength returns an error if the features disagree on the SVE register length.
func (c *CPU) checkLength() error {
	lengths := 0
	for _, f := range c.Features {
		if sveLengths[f] > 0 {
			lengths++
		}
	}
	switch {
	case lengths > 1:
		return errors.New("target: SVE registers have one length: leave one of sve256, sve512 and sve1024")
	case lengths > 0 && !c.Has("sve"):
		return fmt.Errorf("target: %d bits of SVE registers, but no feature sve: add it", 8*c.sveBytes())
	}
	return nil
}

// Linux hwcap bits of an arm64 processor, and their names in /proc/cpuinfo.
var (
	armHWCAP  = map[string]uint{"asimd": 1, "atomics": 8, "asimdhp": 10, "asimddp": 20, "sve": 22}
	armHWCAP2 = map[string]uint{"sve2": 1, "i8mm": 13, "bf16": 14}
)

// hwcapFlags returns the /proc/cpuinfo flags for these bits, and the SVE register length if there is one.
func hwcapFlags(hwcap, hwcap2 uint64, registerBytes func() int) (flags []string) {
	for name, bit := range armHWCAP {
		if hwcap>>bit&1 != 0 {
			flags = append(flags, name)
		}
	}
	for name, bit := range armHWCAP2 {
		if hwcap2>>bit&1 != 0 {
			flags = append(flags, name)
		}
	}
	if hwcap>>armHWCAP["sve"]&1 == 0 {
		return flags
	}
	bytes := registerBytes()
	for name, b := range sveLengths {
		if b == bytes {
			flags = append(flags, name)
		}
	}
	return flags
}
