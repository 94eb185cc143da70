package main

import (
	"slices"
	"strings"
)

// units are words that another machine may print instead of each other.
var units = []string{"ns", "us", "µs", "ms", "s", "min"}

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

// alike says whether a line is as one of a tutorial, whatever numbers and whatever stands for its dots.
func alike(shown, printed string) bool {
	want, got := strings.Fields(shown), strings.Fields(printed)
	if n := len(want) - 1; n >= 0 && want[n] == "..." && len(got) > n {
		want, got = want[:n], got[:n]
	}
	return slices.EqualFunc(want, got, func(v, w string) bool {
		return v == w || v == "..." || strings.ContainsAny(v, "0123456789") && strings.ContainsAny(w, "0123456789") ||
			slices.Contains(units, v) && slices.Contains(units, w)
	})
}
