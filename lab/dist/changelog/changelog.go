package changelog

import (
	"fmt"
	"regexp"
	"strings"
)

// Unreleased is the heading of the section of unreleased changes.
const Unreleased = "Unreleased"

var (
	heading = regexp.MustCompile(`^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$`)
	release = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)$`)
	after   = regexp.MustCompile(`-\d+-g[0-9a-f]+$`)
)

// Section returns the text for a version: the section of a release tag such as v1.2.0, or the unreleased one for any
// other commit. It returns an error if the section is missing, empty, or lacks a release's date.
func Section(text, version string) (string, error) {
	name := Unreleased
	if m := release.FindStringSubmatch(version); m != nil && !after.MatchString(version) {
		name = m[1]
	}
	var body []string
	found := false
	for _, line := range strings.Split(text, "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			if found {
				break
			}
			if found = m[1] == name; found && name != Unreleased && m[2] == "" {
				return "", fmt.Errorf("CHANGELOG.md: section [%s] has no date: write '## [%s] - YYYY-MM-DD'", name, name)
			}
			continue
		}
		if found && !strings.HasPrefix(line, "[") { // link targets of the headings
			body = append(body, line)
		}
	}
	section := strings.TrimSpace(strings.Join(body, "\n"))
	if section == "" {
		return "", fmt.Errorf("CHANGELOG.md has no section [%s], or nothing in it: say what users get", name)
	}
	return section, nil
}

// Points returns the bullet points of a section, each on one line, without formatting.
func Points(section string) (points []string) {
	for _, line := range strings.Split(section, "\n") {
		text := strings.NewReplacer("**", "", "`", "").Replace(strings.TrimSpace(line))
		switch {
		case strings.HasPrefix(line, "- "):
			points = append(points, strings.TrimPrefix(text, "- "))
		case strings.HasPrefix(line, "  ") && len(points) > 0:
			points[len(points)-1] += " " + text
		}
	}
	return points
}
