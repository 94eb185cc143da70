package humanize

import (
	"slices"
	"strings"
)

const (
	// maxDistance bounds the edit distance of similar names.
	maxDistance = 3
	// maxName bounds the length of a word that is compared, in bytes.
	maxName = 64
)

// DidYouMean returns ": did you mean PREFIXNAME?" with the name that a mistyped word most likely stands for, or "" if
// none is similar.
func DidYouMean(prefix, word string, names []string) string {
	if len(word) > maxName {
		return ""
	}
	word = strings.ToLower(word)
	similar := ""
	limit := min((len(word)+1)/3, maxDistance)
	least := limit + 1
	for _, name := range slices.Sorted(slices.Values(names)) {
		d := distance(word, name)
		if min(len(word), len(name)) >= 3 && (strings.HasPrefix(name, word) || strings.HasPrefix(word, name)) {
			d = min(d, limit) // an abbreviation, or a word too many
		}
		if d < least {
			similar, least = name, d
		}
	}
	if similar == "" {
		return ""
	}
	return ": did you mean " + prefix + similar + "?"
}

// distance returns the number of bytes to insert, delete, replace or swap with the next to turn a into b.
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range len(b) {
		d[0][j+1] = j + 1
		for i := range len(a) {
			change := d[i][j]
			if a[i] != b[j] {
				change++
			}
			d[i+1][j+1] = min(change, d[i][j+1]+1, d[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d[i+1][j+1] = min(d[i+1][j+1], d[i-1][j-1]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
