package codegen

import (
	"fmt"
	"strings"
)

// instructions are those for vectors of so many lanes, as C, where the macros say that the machine has them.
type instructions map[int64]struct{ condition, code string }

// shortest is the lanes of the shortest vectors in registers, which are not taken apart.
const shortest = 4

// byInstruction is the body of a function of some operands by an instruction. Where there is none for so many lanes,
// but for fewer, it calls the function for halves; elsewhere the body is a plain one.
func (u *Unit) byInstruction(by instructions, lanes int64, operands []string, plain string, half func() string) string {
	var body strings.Builder
	branch := "#if"
	if one, ok := by[lanes]; ok {
		fmt.Fprintf(&body, "#if %s\n  return %s;\n", one.condition, one.code)
		branch = "#elif"
	}
	if lanes > shortest {
		fmt.Fprintf(&body, "%s %s\n  return %s;\n", branch, by[shortest].condition, halves(half(), lanes, operands))
		branch = "#elif"
	}
	if branch == "#if" {
		return plain
	}
	return body.String() + "#else\n" + plain + "#endif\n"
}

// halves calls a function for either half of the operands.
func halves(name string, lanes int64, operands []string) string {
	half := func(first int64) string {
		parts := make([]string, len(operands))
		for k, x := range operands {
			parts[k] = fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", x, x, indices(first, lanes/2))
		}
		return fmt.Sprintf("%s(%s)", name, strings.Join(parts, ", "))
	}
	return fmt.Sprintf("__builtin_shufflevector(%s, %s, %s)", half(0), half(lanes/2), indices(0, lanes))
}
