package show

import (
	"io"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// Screen is a terminal that people read. A table that is written to it is elided to its width, tells times by how long
// ago they were, and has colours; written to anything else it has all of every cell.
type Screen struct {
	io.Writer
	// Width is in columns; with 0 nothing is elided.
	Width int
	// Full says that times are told in full.
	Full bool
	// Colour says that states and errors have colours.
	Colour bool
	Now    time.Time
}

const (
	// leastScreen is the width, in columns, below which a row is not elided further.
	leastScreen = 60
	// leastCell is how many columns of a cell are left at least.
	leastCell = 9
	// columnGap is the space between columns.
	columnGap = 2
)

// fit lowers the widths of columns that may be elided, the widest first, until a row fits the screen, or nothing more
// can go.
func (s *Screen) fit(widths []int, elidable func(column int) bool) {
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	for excess := total - max(s.Width, leastScreen); excess > 0; excess-- {
		widest := -1
		for i, w := range widths {
			if elidable(i) && w > leastCell && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// ElideMiddle cuts text to a width in columns: names and ids are told apart by both of their ends, so the middle goes.
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
	for end < len(runes) && runeColumns(runes[end]) == 0 { // marks whose letter is gone
		end++
	}
	return string(runes[:begin]) + "…" + string(runes[end:])
}

// Columns is how many columns of a terminal a text takes.
func Columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is two for the wide characters of East Asia, and none for marks that stand over a letter.
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

// Colours, as terminals know them.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// stateColours are the colours of the words with which states begin. Those that are not here need no attention.
var stateColours = map[string]string{
	"running": green, "busy": green,
	"costs": yellow, "paused": yellow, "cordoned": yellow, "draining": yellow, "drained": yellow,
	"prevents": red, "failed": red, "gone": red, "quarantined": red, "expired": red, "revoked": red,
}

// stateColour is the colour of a state; empty when it has none.
func stateColour(state string) string {
	word, _, _ := strings.Cut(state, " ")
	return stateColours[strings.TrimSuffix(word, ",")]
}

// errorColour is the colour of a class of errors; empty where there is no error.
func errorColour(class string) string {
	if class == "" || class == Missing {
		return ""
	}
	return red
}
