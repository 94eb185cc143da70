package userkernel

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	// splice matches a line continuation.
	splice = regexp.MustCompile(`\\[ \t\v\f]*(\r\n|\n|\r)`)
	// directive matches the start of a directive that includes another file, anywhere in the source, possibly with
	// comments inside.
	directive = regexp.MustCompile(`(?:#|%:)(?:\s|/\*(?s:.*?)\*/)*(?:include|include_next|import|embed)(?:[^A-Za-z0-9_]|$)`)
	// standard matches the allowed directives.
	standard = regexp.MustCompile(`^#[ \t]*include[ \t]*<[A-Za-z0-9_][A-Za-z0-9_+-]*(/[A-Za-z0-9_][A-Za-z0-9_+-]*)*\.h>[ \t]*(//|/\*|\r?\n|$)`)
	// hidden matches other ways to include files, or to test for them.
	hidden = regexp.MustCompile(`(?i)__has_(include|include_next|embed)\b|incbin\b|\.include\b`)
)

// checkSource rejects sources that include or embed other files, since a kernel is identified by its text. It does
// not parse comments and strings, and rejects such directives there as well. Standard headers are allowed: they come
// with the compiler, whose version is part of object keys.
func checkSource(source string) error {
	text := splice.ReplaceAllString(source, "")
	for _, at := range directive.FindAllStringIndex(text, -1) {
		if !standard.MatchString(text[at[0]:]) {
			line, _, _ := strings.Cut(text[at[0]:], "\n")
			return fmt.Errorf("the source has %.80q: a kernel may include standard headers only, by #include <name.h>", line)
		}
	}
	if word := hidden.FindString(text); word != "" {
		return fmt.Errorf("the source has %s: a kernel may not include other files", word)
	}
	return nil
}

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
