package humanize

import (
	"io"
	"strings"
	"unicode"
)

// Clean is a writer for text that people read. Unprintable characters but newlines and tabs become blanks, because
// names in untrusted files may contain sequences that control a terminal.
type Clean struct{ io.Writer }

func (c Clean) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.Writer, Printable(string(p), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Printable replaces unprintable characters by blanks, except those to keep.
func Printable(text, keep string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			return r
		}
		return ' '
	}, text)
}
