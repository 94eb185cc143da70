package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var themed = regexp.MustCompile(`--([\w-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`)

// luminance returns the relative luminance of a colour, as WCAG 2.2 defines it.
func luminance(t *testing.T, colour string) (l float64) {
	t.Helper()
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(colour[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

// TestColoursMeetWCAGContrast checks the colours of the style sheet in both themes: 4.5 to 1 for text (level AA) on
// each background that it stands on, and 3 to 1 for marks in charts.
func TestColoursMeetWCAGContrast(t *testing.T) {
	sheet, err := static.ReadFile("static/style.css")
	if err != nil {
		t.Fatal(err)
	}
	colours := map[string][]string{}
	for _, m := range themed.FindAllStringSubmatch(string(sheet), -1) {
		colours[m[1]] = m[2:]
	}
	if n := strings.Count(string(sheet), "light-dark("); n != len(colours) {
		t.Errorf("%d of %d colours are read", len(colours), n)
	}
	text := []string{"text", "dim", "link", "bad", "warn"}
	for _, pair := range []struct {
		front []string
		back  string
		least float64
	}{
		{text, "back", 4.5}, {text, "raised", 4.5}, {text, "bad-back", 4.5}, {[]string{"a0", "a1", "a2", "a3", "bad", "warn"}, "back", 3},
	} {
		for _, front := range pair.front {
			for theme, name := range []string{"light", "dark"} {
				a, b := luminance(t, colours[front][theme]), luminance(t, colours[pair.back][theme])
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < pair.least {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, front, pair.back, ratio, pair.least)
				}
			}
		}
	}
	for _, rule := range regexp.MustCompile(`(?m)^.*opacity: [^1].*$`).FindAllString(string(sheet), -1) {
		if !strings.HasPrefix(rule, "circle.failed") {
			t.Errorf("the rule %q fades text", rule)
		}
	}
}
