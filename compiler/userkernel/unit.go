package userkernel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unit returns the translation unit of a candidate under a name: the header, its numbers as macros, the prototype
// of the function "kernel", and its source. All other functions must be static, since a module may contain the
// kernel several times.
func (c *Candidate) Unit(name, header, prototype string, threads int) string {
	var b strings.Builder
	for _, l := range c.Kernel.Libraries { // another version has other headers, and objects are keyed by their text
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
