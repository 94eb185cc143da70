package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"pgregory.net/rapid"
)

// TestDiffHoldsBothTexts checks that hunks put together are the texts, alternate, and share what texts share.
func TestDiffHoldsBothTexts(t *testing.T) {
	text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 12)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := text.Draw(rt, "a"), text.Draw(rt, "b")
		var before, after []string
		for k, h := range diff(a, b) {
			if h.Same && !slices.Equal(h.Before, h.After) || len(h.Before)+len(h.After) == 0 || k > 0 && h.Same == diff(a, b)[k-1].Same {
				rt.Fatalf("hunk %d is %+v", k, h)
			}
			before, after = append(before, h.Before...), append(after, h.After...)
		}
		if !slices.Equal(before, a) || !slices.Equal(after, b) {
			rt.Fatalf("the hunks are of %q and %q", before, after)
		}
	})
	shared := 0
	for _, h := range diff(strings.Split("for i;  x;  y;z", ";"), strings.Split("for j;  x;for k;  y;z;", ";")) {
		if h.Same {
			shared += len(h.After)
		}
	}
	if shared != 3 {
		t.Errorf("%d lines are shared", shared)
	}
}

func TestPageMarksDifferencesAndEscapesText(t *testing.T) {
	var out strings.Builder
	err := writePage(&out, "<task>", []backend.Step{{Name: "lower", Text: "for i < 4\n  a[i] = 1\n"}, {Name: "</h2>", Text: "for i < 4\n  a[i] = 2\n"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>&lt;task&gt;</title>", "&lt;/h2&gt;", "<pre>  for i &lt; 4\n</pre>",
		"<pre class=\"removed\">-   a[i] = 1\n</pre>", "<pre class=\"added\">+   a[i] = 2\n</pre>",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
	}
}
