package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// step is a block of a tutorial that is run, compared or written.
type step struct {
	// line is the number of the block's first line.
	line int
	// kind is sh for commands, text for output, or file.
	kind string
	// name is the file name.
	name string
	text string
}

// named matches the end of a text that names the following file.
var named = regexp.MustCompile("`([\\w./-]+)`:$")

// shown lists the kinds of blocks that are files if the text names them, and otherwise ignored.
var shown = []string{"console", "python", "c", "go", "yaml", "json"}

// stepsOf returns the steps of a tutorial in order.
func stepsOf(text string) (steps []step, err error) {
	var open *step
	last := "" // last line of text before a block
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

// opened returns the step of a block after a line of text.
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
