package main

import (
	"fmt"
	"regexp"
	"strings"
)

// unreleased is the heading of the section of unreleased changes.
const unreleased = "Unreleased"

var (
	changelogHeading = regexp.MustCompile(`^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$`)
	releaseTag       = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)$`)
	commitsAfterTag  = regexp.MustCompile(`-\d+-g[0-9a-f]+$`)
)

// changelogSection returns the section of CHANGELOG.md for a version: that of a release tag such as v1.2.0, or the
// unreleased one for any other commit. Headings look like "## [1.2.0] - 2026-05-01". It returns an error if the
// section is missing or empty, or if the heading of a release lacks a date.
func changelogSection(text, version string) (string, error) {
	name := unreleased
	if m := releaseTag.FindStringSubmatch(version); m != nil && !commitsAfterTag.MatchString(version) {
		name = m[1]
	}
	var body []string
	found := false
	for _, line := range strings.Split(text, "\n") {
		if m := changelogHeading.FindStringSubmatch(line); m != nil {
			if found {
				break
			}
			if found = m[1] == name; found && name != unreleased && m[2] == "" {
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
		return "", fmt.Errorf("CHANGELOG.md has no section [%s], or nothing in it: describe the changes for users", name)
	}
	return section, nil
}

// changelogPoints returns the bullet points of a section without formatting, one line each.
func changelogPoints(section string) (points []string) {
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
