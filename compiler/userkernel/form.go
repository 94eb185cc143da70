package userkernel

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// pattern returns the canonical text of the form.
func (f Form) pattern() string { return strings.Join(f.Text, "\n") + "\n" }

// bound returns the names that occur in the text, in order.
func (f Form) bound() (names []string) {
	rest := f.pattern()
	for {
		_, after, found := strings.Cut(rest, "$")
		if !found {
			return names
		}
		name := after[:wordLength(after)]
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		rest = after[len(name):]
	}
}

// wordLength returns the length of the name at the start of a text.
func wordLength(text string) int {
	n := 0
	for n < len(text) && (text[n] >= 'A' && text[n] <= 'Z' || text[n] >= '0' && text[n] <= '9' || text[n] == '_') {
		n++
	}
	return n
}

// names returns all names that the form defines, sorted.
func (f Form) names() []string {
	return slices.Sorted(slices.Values(append(f.bound(), slices.Collect(maps.Keys(f.Define))...)))
}

// match returns the values of the names if a canonical text has the form.
func (f Form) match(text string) (values map[string]int64, ok bool) {
	values = maps.Clone(f.Define)
	if values == nil {
		values = map[string]int64{}
	}
	rest := f.pattern()
	for {
		literal, after, more := strings.Cut(rest, "$")
		if text, ok = strings.CutPrefix(text, literal); !ok {
			return nil, false
		}
		if !more {
			return values, text == ""
		}
		name := after[:wordLength(after)]
		rest = after[len(name):]
		digits := 0
		for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
			digits++
		}
		v, err := strconv.ParseInt(text[:digits], 10, 64)
		if err != nil || v > maxMagnitude {
			return nil, false
		}
		if before, bound := values[name]; bound && before != v {
			return nil, false
		}
		values[name], text = v, text[digits:]
	}
}

// Match returns the values of the form's names for a workload; ok is false if no form matches.
func (k *Kernel) Match(w *expr.Workload) (values map[string]int64, ok bool) {
	f, ok := k.Fit(w.Text())
	if !ok {
		return nil, false
	}
	return f.Extents, true
}
