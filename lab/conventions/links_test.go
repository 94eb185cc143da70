package conventions_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	// dropped matches the characters that an anchor omits from a heading.
	dropped = regexp.MustCompile(`[^\pL\pN _-]`)
)

// TestLinksLeadSomewhere follows links between documents to files and headings.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			followed++
			if err := follow(path, m[1]); err != nil {
				t.Errorf("%s: the link to %s: %v", path, m[1], err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if followed < 100 {
		t.Errorf("%d links were followed", followed)
	}
}

func follow(from, to string) error {
	name, anchor, _ := strings.Cut(to, "#")
	path := from
	if name != "" {
		path = filepath.Join(filepath.Dir(from), filepath.FromSlash(name))
	}
	if _, err := os.Stat(path); err != nil || anchor == "" {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && strings.HasPrefix(line, "#") && anchorOf(title) == anchor {
			return nil
		}
	}
	return errors.New("there is no such heading")
}

// anchorOf returns the anchor of a heading.
func anchorOf(title string) string {
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
}
