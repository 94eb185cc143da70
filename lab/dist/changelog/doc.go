// Package changelog parses CHANGELOG.md. It has a section for each release, such as "## [1.2.0] - 2026-05-01", newest
// first, below "## [Unreleased]".
package changelog
