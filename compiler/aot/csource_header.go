package aot

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// cTypes maps element types to C. The 16-bit floating-point types are represented by their bits.
var cTypes = map[array.DType]string{
	array.Float32: "float", array.Float64: "double", array.Float16: "uint16_t", array.BFloat16: "uint16_t",
	array.Int8: "int8_t", array.Int16: "int16_t", array.Int32: "int32_t", array.Int64: "int64_t",
	array.Uint8: "uint8_t", array.Uint16: "uint16_t", array.Uint32: "uint32_t", array.Uint64: "uint64_t", array.Bool: "uint8_t",
}

// header returns the interface of the archive. Sizes of code and stack are 0 before they are measured.
func (s *source) header() string {
	upper := strings.ToUpper(s.prefix)
	var b strings.Builder
	fmt.Fprintf(&b, `/* The model %[3]s, compiled for %[4]s. README.txt tells how to build it. */
#ifndef %[2]s_H
#define %[2]s_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of memory: the arena, which holds inputs, outputs and all in between, and the stack of %[1]s_run, an estimate. */
#define %[2]s_ARENA_BYTES %[5]d
#define %[2]s_STACK_BYTES %[6]d
#define %[2]s_RAM_BYTES %[7]d

/* Bytes that are only read: weights and code. */
#define %[2]s_WEIGHTS_BYTES %[8]d
#define %[2]s_CODE_BYTES %[9]d
#define %[2]s_FLASH_BYTES %[10]d

/* The arena is aligned to 64 bytes. With %[2]s_OWN_ARENA defined it is yours to define. */
extern uint8_t %[1]s_arena[%[2]s_ARENA_BYTES];
extern const uint8_t %[1]s_weights[];

/* Computes the outputs from the inputs, which stay as they are. One call at a time. Returns 0; the number of an input, counted
 * from 1, with an index out of range, for which it computes nothing; or -1 if a branch is taken that does not fit. */
int %[1]s_run(void);
`, s.prefix, upper, comment(s.program.Name), s.options.Target.Model(), s.arenaBytes, s.sizes.Stack, s.ramBytes(), s.weightsBytes, s.sizes.Code, s.flashBytes())
	s.tensorMacros(&b, "input", s.program.Inputs)
	s.tensorMacros(&b, "output", s.program.Outputs)
	b.WriteString("\n#ifdef __cplusplus\n}\n#endif\n#endif\n")
	return b.String()
}

// tensorMacros declares the locations and descriptions of inputs or outputs.
func (s *source) tensorMacros(b *strings.Builder, kind string, values []int) {
	upper, upperKind := strings.ToUpper(s.prefix), strings.ToUpper(kind)
	fmt.Fprintf(b, "\n#define %s_%s_COUNT %d\n", upper, upperKind, len(values))
	for k, v := range values {
		value, shape, at := s.program.Values[v], s.program.MemoryOf(v), s.value(v)
		constant, base := "", "arena"
		if at.inWeights {
			constant, base = "const ", "weights"
		}
		if kind == "output" {
			constant = "const "
		}
		elements := array.Elements(shape)
		fmt.Fprintf(b, `
/* %s %d, "%s": %s[%s] */
#define %[6]s_%[7]s_%[2]d_RANK %[8]d
#define %[6]s_%[7]s_%[2]d_SHAPE {%[9]s}
#define %[6]s_%[7]s_%[2]d_ELEMENTS %[10]d
#define %[6]s_%[7]s_%[2]d_BYTES %[11]d
static inline %[12]s%[13]s *%[14]s_%[1]s_%[2]d(void) { return (%[12]s%[13]s *)(%[12]svoid *)(%[14]s_%[15]s + %[16]d); }
`, kind, k, comment(value.Name), value.DType, numbers(shape), upper, upperKind, len(shape), numbers(shape), elements, elements*value.DType.Bytes(),
			constant, cTypes[value.DType], s.prefix, base, at.offset)
	}
}

// numbers formats extents as a list; a scalar has one, since C has no empty lists.
func numbers(shape []int64) string {
	if len(shape) == 0 {
		return "1"
	}
	return humanize.Join(shape, ", ", func(n int64) string { return fmt.Sprint(n) })
}
