package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const exampleChangelog = `# Changelog

## [Unreleased]

- **More** of it,
  on two lines.

## [1.1.0] - 2026-05-01

### Fixed

- ` + "`this`" + `
- that

## [1.0.0]

- all

## [0.9.0] - 2026-01-01

[1.1.0]: https://example.com
`

func TestChangelogSection(t *testing.T) {
	for version, want := range map[string]string{
		"v1.1.0":           "### Fixed\n\n- `this`\n- that",
		"v1.1.0-4-gabcdef": "- **More** of it,\n  on two lines.",
		"abcdef0":          "- **More** of it,\n  on two lines.",
	} {
		if got, err := changelogSection(exampleChangelog, version); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", version, got, err, want)
		}
	}
	for version, want := range map[string]string{
		"v1.2.0": "no section [1.2.0]", "v1.0.0": "no date", "v0.9.0": "nothing in it", "v1.1.0-rc.1": "no section [1.1.0-rc.1]",
	} {
		if _, err := changelogSection(exampleChangelog, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", version, err, want)
		}
	}
}

func TestChangelogPoints(t *testing.T) {
	want := []string{"More of it, on two lines."}
	section, err := changelogSection(exampleChangelog, "abcdef0")
	if got := changelogPoints(section); err != nil || !slices.Equal(got, want) {
		t.Errorf("points: %q, %v; want %q", got, err, want)
	}
}

func TestChangelogHasUnreleasedSection(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	if section, err := changelogSection(string(text), "abcdef0"); err != nil || len(changelogPoints(section)) == 0 {
		t.Errorf("the unreleased section: %v", err)
	}
}
