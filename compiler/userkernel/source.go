package userkernel

import (
	"fmt"
	"regexp"
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
		return fmt.Errorf("the source has %s: a kernel may not bring in or look for other files", word)
	}
	return nil
}
