package target

import (
	"strconv"
	"strings"
)

// assemblers maps GPU instruction sets to the first version of NVIDIA's assembler that supports them, and the PTX
// version of their code.
var assemblers = map[string][2]int{
	"sm_80": {11, 2}, "sm_86": {11, 2}, "sm_87": {11, 4}, "sm_89": {11, 8}, "sm_90": {11, 8}, "sm_90a": {12, 4},
}

// Assembled reports whether any assembler version supports the target, i.e. whether it is an NVIDIA GPU.
func (t *Target) Assembled() bool {
	if t.GPU == nil || t.GPU.Simulated {
		return false
	}
	_, known := assemblers[t.GPU.Arch]
	return known
}

// Assembles reports whether the given version of NVIDIA's assembler, such as 12.4.131, supports the target's GPU.
func (t *Target) Assembles(version string) bool {
	if !t.Assembled() {
		return false
	}
	smallest := assemblers[t.GPU.Arch]
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, bad := strconv.Atoi(minor)
	return err == nil && bad == nil && (a > smallest[0] || a == smallest[0] && b >= smallest[1])
}
