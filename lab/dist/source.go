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

	"github.com/tilth-dev/tilth/lab/dist/changelog"
)

// source is the commit of a release.
type source struct {
	root string
	// version is the output of 'git describe' with version tags.
	version, commit string
	// when is the commit's time, which all files of the release get.
	when time.Time
	// changes is the version's section of the changelog.
	changes string
}

// checkedOut returns the commit in a folder. It refuses uncommitted changes, because the release could not be
// reproduced.
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
	s.changes, err = changelog.Section(string(text), s.version)
	return s, err
}

// said adds a command's standard error to its error.
func said(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}
