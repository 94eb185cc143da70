package wire

import (
	"strings"
	"unicode"
)

// maxLineBytes bounds a line.
const maxLineBytes = 4 << 10

// Line is the beginning of a message that somebody else may have worded, as messages and terminals can have it: of its first line, with
// blanks in the place of what is not printable, such as the sequences that move a cursor.
func Line(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	line = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line[:min(len(line), maxLineBytes)])
	return strings.TrimSpace(line)
}
