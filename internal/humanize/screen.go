package humanize

import (
	"io"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// Screen is a terminal. A table written to it is fitted to its width, shows relative times, and is coloured.
// A table written to any other writer is complete. Other text has no escape sequences.
type Screen struct {
	io.Writer
	// Width is the number of columns; 0 disables eliding.
	Width int
	// Full disables relative times.
	Full bool
	// Colour enables colours for states and errors.
	Colour bool
	Now    time.Time
}

// Write writes text like Clean.
func (s *Screen) Write(p []byte) (int, error) { return Clean{s.Writer}.Write(p) }

const (
	// minScreen is the row width, in columns, at which fitting stops.
	minScreen = 20
	// minCell is the minimum width of an elided cell in columns. minName is that of the first column as long as
	// optional columns are shown.
	minCell, minName = 9, 20
	// columnGap is the space between columns.
	columnGap = 2
	// dropped is the width of a column that is not shown.
	dropped = -1
)

// ElideMiddle shortens text to a width in columns. It drops the middle, because the ends of names and ids
// distinguish them.
func ElideMiddle(text string, columns int) string {
	if Columns(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	runes := []rune(text)
	head := (columns - 1) * 2 / 5
	tail := columns - 1 - head
	begin, end := 0, len(runes)
	for ; begin < end && runeColumns(runes[begin]) <= head; begin++ {
		head -= runeColumns(runes[begin])
	}
	for ; begin < end && runeColumns(runes[end-1]) <= tail; end-- {
		tail -= runeColumns(runes[end-1])
	}
	for end < len(runes) && runeColumns(runes[end]) == 0 { // combining marks without their letter
		end++
	}
	return string(runes[:begin]) + "…" + string(runes[end:])
}

// Columns returns the display width of a text in terminal columns.
func Columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns 2 for wide East Asian characters and 0 for combining marks.
func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// ANSI colours.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// stateColours maps the first word of a state to its colour. Other states need no attention.
var stateColours = map[string]string{
	"running": green, "busy": green,
	"costs": yellow, "paused": yellow, "cordoned": yellow, "draining": yellow, "drained": yellow,
	"prevents": red, "failed": red, "gone": red, "quarantined": red, "expired": red, "revoked": red,
}

// stateColour returns the colour of a state, or "".
func stateColour(state string) string {
	word, _, _ := strings.Cut(state, " ")
	return stateColours[strings.TrimSuffix(word, ",")]
}

// errorColour returns the colour of an error class, or "" for no error.
func errorColour(class string) string {
	if class == "" || class == Missing {
		return ""
	}
	return red
}

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
