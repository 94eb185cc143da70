package target

import (
	"errors"
	"fmt"
)

// sveLengths are the features that say how many bytes SVE's registers have. Code for one is wrong with any other
// length, also a longer one, so that a processor has one of them at most: none where the length is that of Neon, or no
// power of two.
var sveLengths = map[string]int{"sve256": 32, "sve512": 64, "sve1024": 128}

// sveBytes is how many bytes SVE's registers have; 0 where code does not depend on it.
func (c *CPU) sveBytes() int {
	for _, f := range c.Features {
		if bytes := sveLengths[f]; bytes > 0 {
			return bytes
		}
	}
	return 0
}

// SVEBytes is how many bytes SVE's registers have that code for the target is made for; 0 where it depends on none.
func (t *Target) SVEBytes() int { return t.CPU.sveBytes() }

// checkLength says that the features contradict each other on SVE's registers.
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

// Bits of what Linux says of an arm64 processor to each program, and their names in /proc/cpuinfo.
var (
	armHWCAP  = map[string]uint{"asimd": 1, "atomics": 8, "asimdhp": 10, "asimddp": 20, "sve": 22}
	armHWCAP2 = map[string]uint{"sve2": 1, "i8mm": 13, "bf16": 14}
)

// hwcapFlags are the flags of /proc/cpuinfo by those bits, and the length of SVE's registers where there are any.
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
