package builder

import "strings"

// firstLine is what is reported of a message that spans several.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
