package userkernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unit is the translation unit of a candidate under a name: the header with what it may use, its numbers as macros,
// the prototype of the function "kernel", and its source. Functions but the kernel itself must be static, since a
// module may have the kernel several times.
func (c *Candidate) Unit(name, header, prototype string, threads int) string {
	var b strings.Builder
	for _, l := range c.Kernel.Libraries { // whose headers have another content in another version, and objects are kept by their text
		fmt.Fprintf(&b, "/* %s */\n", l)
	}
	b.WriteString(header)
	numbers := c.Names(threads)
	for _, macro := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&b, "#define %s %d\n", macro, numbers[macro])
	}
	fmt.Fprintf(&b, "#define kernel %s\n__attribute__((visibility(\"hidden\"))) %s;\n#line 1 \"kernel.c\"\n%s\n", name, prototype, c.Kernel.Source)
	return b.String()
}
