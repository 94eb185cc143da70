package target

import (
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "3": {3}, "0,2-5": {0, 2, 3, 4, 5}, "4-4, 1": {4, 1}} {
		if got, err := ParseCPUs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{",", "-1", "5-2", "a", "0-99999999", "1-", "0-65000,0-65000"} {
		if got, err := ParseCPUs(text); err == nil {
			t.Errorf("%q is %d processors", text, len(got))
		}
	}
}

func TestFormatCPUs(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "7": {7}, "0-3,8": {8, 3, 2, 1, 0, 0}, "1,3": {1, 3}, "4-5,7": {4, 5, 7}} {
		if got := FormatCPUs(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}
