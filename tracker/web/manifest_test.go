package web

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// items returns a list of n items.
func items(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func TestManifestIsReadWithinBounds(t *testing.T) {
	for name, c := range map[string]struct{ text, fails string }{
		"as many as there may be": {text: `{"tasks":` + items(maxKernels, "{}") + `,"members":` + items(maxMembers, `{"name":"m"}`) + `}`},
		"too many kernels": {
			text:  `{"tasks":` + items(maxKernels+1, "{}") + `}`,
			fails: "its manifest.json has more than 16384 tasks, the most that are shown",
		},
		"too many members": {
			text:  `{"members":` + items(maxMembers+1, `{"name":"m"}`) + `}`,
			fails: "its manifest.json has more than 1024 members, the most that are shown",
		},
		"what is no list":  {text: `{"calls":{"a":1}}`, fails: "its manifest.json is not valid"},
		"what ends early":  {text: `{"tasks":[{}`, fails: "its manifest.json is not valid"},
		"a text as kernel": {text: `{"tasks":["conv"]}`, fails: "its manifest.json is not valid"},
	} {
		_, err := readManifest(strings.NewReader(c.text))
		if (err == nil) != (c.fails == "") || err != nil && err.Error() != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManifestTellsSizesAndNumbers covers lists whose items are only counted, of any type and up to the manifest's
// limit.
func TestManifestTellsSizesAndNumbers(t *testing.T) {
	const many = 300_000
	m, err := readManifest(strings.NewReader(`{"inputs":[{"a":[1,2]},[3],null,"x"],"outputs":null,"calls":` + items(many, "[[]]") +
		`,"target":{"cpu":"znver5","toolchain":{"a":1}},"members":[{"name":"a","size_bytes":1024},{"name":"a","size_bytes":2048}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Inputs) != 4 || len(m.Outputs) != 0 || len(m.Calls) != many || word(m.Target.CPU) != "znver5" || word(m.Target.Toolchain) != "" {
		t.Errorf("it has %d inputs, %d outputs and %d calls on %s and %s", len(m.Inputs), len(m.Outputs), len(m.Calls), m.Target.CPU, m.Target.Toolchain)
	}
	var members []comparedFact
	for _, f := range factsOf([2]*manifest{m, m}) {
		if f.Name == "a" {
			members = append(members, f)
		}
	}
	if len(members) != 1 || members[0].Of != [2]string{"1.00 KiB", "1.00 KiB"} {
		t.Errorf("the members are %v", members)
	}
}

// TestEachMemberOfTwoPackagesIsCompared is a regression test: members of the second package only were omitted.
func TestEachMemberOfTwoPackagesIsCompared(t *testing.T) {
	var both [2]*manifest
	for side, text := range []string{
		`{"members": [{"name": "a", "size_bytes": 1}, {"name": "b", "size_bytes": 2}, {"name": "a", "size_bytes": 3}]}`,
		`{"members": [{"name": "c", "size_bytes": 4}, {"name": "b", "size_bytes": 5}]}`,
	} {
		m, err := readManifest(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		both[side] = m
	}
	got := map[string][2]string{}
	var names []string
	for _, f := range factsOf(both) {
		if len(f.Name) == 1 {
			names = append(names, f.Name)
			got[f.Name] = f.Of
		}
	}
	want := map[string][2]string{"a": {"1 B", ""}, "b": {"2 B", "5 B"}, "c": {"", "4 B"}}
	if !slices.Equal(names, []string{"a", "b", "c"}) || !maps.Equal(got, want) {
		t.Errorf("compared are %v: %v, want %v", names, got, want)
	}
}
