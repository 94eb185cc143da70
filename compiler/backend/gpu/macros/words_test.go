package macros

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// word matches the name of a macro where a dialect defines it.
var word = regexp.MustCompile(`(?m)^(?:#define |NVPTX_MMA\()([A-Z][A-Z0-9_]*)`)

// words returns the macros that a dialect defines for kernels: names in capitals without its private prefix.
func words(text, own string) (list []string) {
	for _, m := range word.FindAllStringSubmatch(text, -1) {
		if name := m[1]; !strings.HasPrefix(name, own) && !strings.HasPrefix(name, "INT") && !strings.HasPrefix(name, "UINT") {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func TestDialectsHaveTheSameMacros(t *testing.T) {
	text, err := files.ReadFile("simulated/words.h")
	if err != nil {
		t.Fatal(err)
	}
	here, there := words(string(text), "SIM_"), words(nvptx, "NVPTX_")
	if !slices.Equal(here, there) || len(here) < 30 {
		t.Errorf("simulated/words.h and nvptx.h differ:\n%v\n%v", here, there)
	}
}

// TestEveryMacroIsDocumented looks for the macros in the list of words.go. Those that differ in a suffix share an
// item.
func TestEveryMacroIsDocumented(t *testing.T) {
	page, err := os.ReadFile("words.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range words(nvptx, "NVPTX_") {
		explained := strings.Contains(string(page), "`"+name)
		for k := range name { // `LDMATRIX_X1(r, s, i)`, `_X2`
			explained = explained || name[k] == '_' && strings.Contains(string(page), "`"+name[k:]+"`")
		}
		if !explained {
			t.Errorf("words.go does not list %s", name)
		}
	}
}
