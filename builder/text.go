package builder

import (
	"regexp"
	"strings"
)

// firstLine is what is reported of a message that spans several.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// sourceLine matches the position lines of a stack dump that are within this module.
var sourceLine = regexp.MustCompile(`(?:compiler|builder)/[\w/]+\.go:\d+`)

// panicSite picks the place of a panic out of a stack dump: the first of our lines that is not about recovering.
func panicSite(stack []byte) string {
	for _, site := range sourceLine.FindAllString(string(stack), -1) {
		if !strings.HasPrefix(site, "builder/") {
			return site
		}
	}
	return "unknown place"
}
