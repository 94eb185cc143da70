package target

import (
	"strconv"
	"strings"
)

// assemblers are the first versions of NVIDIA's assembler that know the instruction sets of cards, and the version of
// PTX in which code for them is made.
var assemblers = map[string][2]int{
	"sm_80": {11, 2}, "sm_86": {11, 2}, "sm_87": {11, 4}, "sm_89": {11, 8}, "sm_90": {11, 8}, "sm_90a": {12, 4},
}

// Assembled reports whether any version makes code for the target: whether it is an NVIDIA card.
func (t *Target) Assembled() bool {
	if t.GPU == nil || t.GPU.Simulated {
		return false
	}
	_, known := assemblers[t.GPU.Arch]
	return known
}

// Assembles reports whether NVIDIA's assembler of a version such as 12.4.131 knows the code that is made for the
// target's card.
func (t *Target) Assembles(version string) bool {
	if !t.Assembled() {
		return false
	}
	least := assemblers[t.GPU.Arch]
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, bad := strconv.Atoi(minor)
	return err == nil && bad == nil && (a > least[0] || a == least[0] && b >= least[1])
}
