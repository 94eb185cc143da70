package aot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// readme returns instructions for building the archive into a program.
func (s *source) readme() string {
	upper, t := strings.ToUpper(s.prefix), s.options.Target
	var b strings.Builder
	fmt.Fprintf(&b, `%[1]s: a neural network as C source
%[2]s

Compiled by Tilth from the model %[3]s for %[4]s (%[5]s).

RAM    %[6]d bytes: %[7]d of arena, %[8]d of data, %[9]d of stack (an estimate)
flash  %[10]d bytes: %[11]d of weights, %[12]d of code

Build
-----

Add all .c files to your program. Compile them with gcc or clang and

%[13]s

The compiler's own library (libgcc or compiler-rt) is linked as for any program.
`, s.prefix, strings.Repeat("=", len(s.prefix)+31), comment(s.program.Name), t.Model(), t.Arch(), s.ramBytes(), s.arenaBytes, s.sizes.Data, s.sizes.Stack,
		s.flashBytes(), s.weightsBytes, s.sizes.Code, wrapped(slices.Concat(t.GCCFlags(), toolchain.SourceFlags(t, cFlags))))
	for _, f := range s.support() {
		fmt.Fprintf(&b, "Leave %s out if your program has a C library.\n", f.Name)
	}
	if len(s.sizes.Needs) > 0 {
		fmt.Fprintf(&b, "It calls %s, which are not in this archive.\n", strings.Join(s.sizes.Needs, ", "))
	}
	fmt.Fprintf(&b, `
Use
---

    #include "%[1]s.h"

    float *x = %[1]s_input_0();      /* write the inputs into the arena, */
    %[1]s_run();                     /* compute, */
    y = %[1]s_output_0();            /* and read the outputs. */

%[1]s_run returns 0, or the number of an input, counted from 1, with an index out
of range. %[1]s.h has the type, shape and size of each input and output. Inputs stay as they
are; outputs stay until the next run. Nothing is allocated, and nothing is kept
between runs but what lies in the arena.

To place the arena, compile %[1]s.c with
-D'%[2]s_ARENA_ATTRIBUTES=__attribute__((section(".dtcm")))', or define the array
yourself and compile %[1]s.c with -D%[2]s_OWN_ARENA. %[2]s_WEIGHTS_ATTRIBUTES does the
same for the weights in %[1]s_weights.c.

The code is generated from the model and comes without conditions of its own: its
licence is that of the model.
`, s.prefix, upper)
	return b.String()
}

// wrapped formats words as indented lines.
func wrapped(words []string) string {
	var b strings.Builder
	column := 0
	for _, w := range words {
		if column > 0 && column+len(w) > 70 {
			b.WriteString(" \\\n")
			column = 0
		}
		if column == 0 {
			b.WriteString("   ")
		}
		b.WriteString(" " + w)
		column += len(w) + 1
	}
	return b.String()
}
