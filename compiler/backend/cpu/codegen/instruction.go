package codegen

import (
	"fmt"
	"strings"
)

// instructions maps a number of lanes to an instruction as C, guarded by the macros that announce it.
type instructions map[int64]struct{ condition, code string }

// shortest is the number of lanes of the shortest register vectors, which are not split.
const shortest = 4

// byInstruction returns the body of a function that uses an instruction. If no instruction has that many lanes but
// one has fewer, the body calls the function on halves. Otherwise the body is plain.
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

// halves calls a function on each half of the operands.
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
