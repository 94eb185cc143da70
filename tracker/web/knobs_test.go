package web

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestKnobsAreReadWithinBounds(t *testing.T) {
	var f forms
	known := f.read("tile=8 unroll=-2")
	if got := fmt.Sprint(f.show(known)); got != "[{tile 8} {unroll -2}]" {
		t.Errorf("the knobs are %s", got)
	}
	for name, text := range map[string]string{
		"nothing": "", "a word": "tile", "no number": "tile=wide", "a number that is too large": "tile=99999999999",
		"too many knobs": strings.Repeat("k=1 ", maxKnobs+1),
	} {
		if got := f.read(text); got.form != 0 || len(f) != 1 {
			t.Errorf("%s is read as %v", name, f.show(got))
		}
	}
	for i := range 2 * maxForms {
		f.read(fmt.Sprintf("k%d=1", i))
	}
	if len(f) != maxForms || f.read("tile=4 unroll=1").form != known.form {
		t.Errorf("there are %d forms, want %d", len(f), maxForms)
	}
}

func TestNeighboursDifferInOneKnob(t *testing.T) {
	f := &follow{}
	for i, text := range []string{"a=1 b=1", "a=2 b=1", "a=2 b=2", "a=1 b=1", "a=1 b=3", "a=1", "no knobs", "a=5 b=1"} {
		f.points = append(f.points, point{trial: uint32(i), latency: float64(i + 1), knobs: f.forms.read(text)})
	}
	f.points = append(f.points, point{task: 1, trial: 9, latency: 1, knobs: f.forms.read("a=9 b=1")})
	got := ""
	for _, n := range f.neighbours(0, f.points[0].knobs) {
		got += fmt.Sprintf("%d: %s %d->%d; ", n.Trial, n.Knob, n.From, n.To)
	}
	if want := "1: a 1->2; 7: a 1->5; 4: b 1->3; "; got != want {
		t.Errorf("the neighbours are %q, want %q", got, want)
	}
	if got := f.neighbours(0, knobs{}); got != nil {
		t.Errorf("what has no knobs has the neighbours %v", got)
	}
	for range 2 * maxNeighbours {
		f.points = append(f.points, point{latency: 1, knobs: f.forms.read("a=7 b=1")})
	}
	if n := len(f.neighbours(0, f.points[0].knobs)); n != maxNeighbours {
		t.Errorf("there are %d neighbours, want %d", n, maxNeighbours)
	}
}

// TestEachKnobHasASentence renders the explanation of every knob in the sources of the sketches.
func TestEachKnobHasASentence(t *testing.T) {
	files, err := filepath.Glob("../../compiler/backend/*/sketch/*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`[kK]nob(?:\(| = )"(\w+)"`)
	found := map[string]bool{"alg": true}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = true
		}
	}
	if len(found) < 50 {
		t.Errorf("%d knobs are found, want 50 or more", len(found))
	}
	for name := range found {
		var sentence strings.Builder
		if err := templates()["task"].ExecuteTemplate(&sentence, "knob", name); err != nil || !strings.HasSuffix(strings.TrimSpace(sentence.String()), ".") {
			t.Errorf("knob %s is explained by %q, %v", name, sentence.String(), err)
		}
	}
}
