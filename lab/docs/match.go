package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// units are interchangeable units.
	units = []string{"ns", "us", "µs", "ms", "s", "min"}
	// measures are units after which a number depends on the machine.
	measures = append([]string{"%", "KiB", "MiB", "GiB", "GFLOP/s"}, units...)
	// count matches a number that is the same on every machine, unless a measure follows.
	count = regexp.MustCompile(`^\d{1,3}$`)
	// column matches the separator of two table columns.
	column = regexp.MustCompile(`\S {2,}\S`)
)

// lacking returns the first expected line that is missing from the output, in order, or "".
func lacking(want, printed string) string {
	lines := strings.Split(printed, "\n")
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "" || line == "..." {
			continue
		}
		at := slices.IndexFunc(lines, func(l string) bool { return alike(line, l) })
		if at < 0 {
			return line
		}
		lines = lines[at+1:]
	}
	return ""
}

// alike reports whether a printed line matches a tutorial's line, apart from measurements and text replaced by dots.
func alike(shown, printed string) bool {
	want, got := strings.Fields(shown), strings.Fields(printed)
	if n := len(want) - 1; n >= 0 && want[n] == "..." && len(got) > n {
		want, got = want[:n], got[:n]
	}
	if len(want) != len(got) {
		return false
	}
	table := column.MatchString(strings.TrimSpace(shown))
	for n := range want {
		exact := !table && count.MatchString(want[n]) && (n+1 == len(want) || !slices.Contains(measures, want[n+1]))
		if want[n] != got[n] && (exact || !sameKind(want[n], got[n])) {
			return false
		}
	}
	return true
}

// sameKind reports whether a word matches: any word matches dots, numbers match numbers, and units match units.
func sameKind(want, got string) bool {
	const digits = "0123456789"
	return want == "..." || strings.ContainsAny(want, digits) && strings.ContainsAny(got, digits) ||
		isUnit(want) && isUnit(got)
}

// isUnit reports whether a word is a unit, possibly followed by a colon.
func isUnit(word string) bool { return slices.Contains(units, strings.TrimSuffix(word, ":")) }
