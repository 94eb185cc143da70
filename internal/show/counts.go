package show

import (
	"sort"
	"strconv"
	"strings"
)

// Counts formats counts by name, such as "crash 2, timeout 1", or returns Missing without counts.
func Counts(counts map[string]int) string {
	if len(counts) == 0 {
		return Missing
	}
	var parts []string
	for name, n := range counts {
		parts = append(parts, name+" "+strconv.Itoa(n))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}
