package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is the commit from which a release is built.
type source struct {
	root string
	// version is the output of 'git describe' with version tags.
	version, commit string
	// when is the time of the commit and of all files in the release.
	when time.Time
	// changes is the section of the changelog for the version.
	changes string
}

// checkedOut returns the commit that is checked out in a folder. Uncommitted changes are an error, because the release
// would not be reproducible.
func checkedOut(ctx context.Context, root string) (*source, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), said(err))
		}
		return strings.TrimSpace(string(out)), nil
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		first, _, _ := strings.Cut(changed, "\n")
		return nil, fmt.Errorf("a release is made of a commit, but there are changes (%s): commit them", first)
	}
	s := &source{root: root}
	var seconds string
	for _, ask := range []struct {
		into *string
		args []string
	}{
		{&s.version, []string{"describe", "--tags", "--always", "--match", "v[0-9]*", "--abbrev=12"}},
		{&s.commit, []string{"rev-parse", "HEAD"}},
		{&seconds, []string{"log", "-1", "--format=%ct"}},
	} {
		if *ask.into, err = git(ask.args...); err != nil {
			return nil, err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the commit's time: %w", err)
	}
	s.when = time.Unix(n, 0).UTC()
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	s.changes, err = changelogSection(string(text), s.version)
	return s, err
}

// said adds the standard error of a command to its error.
func said(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
