// Package changelog reads CHANGELOG.md, which has a section for each release: "## [1.2.0] - 2026-05-01", newest first,
// and above them "## [Unreleased]".
package changelog
