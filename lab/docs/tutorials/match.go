package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// units are words that another machine may print instead of each other.
	units = []string{"ns", "us", "µs", "ms", "s", "min"}
	// measures are words before which a number depends on the machine.
	measures = append([]string{"%", "KiB", "MiB", "GiB", "GFLOP/s"}, units...)
	// count is a number that is the same on every machine, unless a measure follows it.
	count = regexp.MustCompile(`^\d{1,3}$`)
	// column is what parts two columns of a table.
	column = regexp.MustCompile(`\S {2,}\S`)
)

// lacking is the first line of what should be printed that is not, in this order; nothing when all are.
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

// alike says whether a line is as one of a tutorial, whatever was measured and whatever stands for its dots.
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

// sameKind says whether a word may stand for another: any for dots, numbers for numbers, units for units.
func sameKind(want, got string) bool {
	const digits = "0123456789"
	return want == "..." || strings.ContainsAny(want, digits) && strings.ContainsAny(got, digits) ||
		isUnit(want) && isUnit(got)
}

// isUnit says whether a word is a unit, also one before the colon of what it tells.
func isUnit(word string) bool { return slices.Contains(units, strings.TrimSuffix(word, ":")) }
