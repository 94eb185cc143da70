package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// step is a block of a tutorial that has to do with its commands.
type step struct {
	// line is the block's first in the tutorial, from 1.
	line int
	// kind is sh for commands, text for what they print, and file.
	kind string
	// name is that of a file.
	name string
	text string
}

// named is the end of a text that names the file that follows.
var named = regexp.MustCompile("`([\\w./-]+)`:$")

// shown are the kinds of blocks that are files, where the text names them, or are only to be read.
var shown = []string{"console", "python", "c", "go", "yaml", "json"}

// stepsOf are the steps of a tutorial, in order.
func stepsOf(text string) (steps []step, err error) {
	var open *step
	last := "" // the last line of text before a block
	for n, line := range strings.Split(text, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open != nil:
			if kind != "" {
				return nil, fmt.Errorf("%d: a block begins in the one of line %d", n+1, open.line-1)
			}
			steps = append(steps, *open)
			open, last = nil, ""
		case fence:
			if open, err = opened(kind, last, n+2); err != nil {
				return nil, err
			}
		case open != nil:
			open.text += line + "\n"
		case strings.TrimSpace(line) != "":
			last = strings.TrimSpace(line)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%d: the block does not end", open.line-1)
	}
	if !slices.ContainsFunc(steps, func(s step) bool { return s.kind == "sh" }) {
		return nil, errors.New("1: no block of the kind sh: there is nothing to follow")
	}
	return slices.DeleteFunc(steps, func(s step) bool { return slices.Contains(shown, s.kind) }), nil
}

// opened is a block that begins after a line of text.
func opened(kind, last string, line int) (*step, error) {
	s := &step{line: line, kind: kind}
	if kind == "sh" || kind == "text" {
		return s, nil
	}
	if !slices.Contains(shown, kind) {
		return nil, fmt.Errorf("%d: a block of the unknown kind %q: want sh, text or %s", line-1, kind, strings.Join(shown, ", "))
	}
	if m := named.FindStringSubmatch(last); m != nil && kind != "console" {
		s.kind, s.name = "file", m[1]
	}
	return s, nil
}
