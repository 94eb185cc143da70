package main

import (
	"regexp"
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

// stepsOf are the steps of a tutorial, in order.
func stepsOf(text string) (steps []step) {
	var open *step
	last := "" // the last line of text before a block
	for n, line := range strings.Split(text, "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open != nil:
			steps = append(steps, *open)
			open = nil
		case fence:
			open = &step{line: n + 2, kind: kind}
			if m := named.FindStringSubmatch(last); m != nil && kind != "sh" && kind != "text" {
				open.kind, open.name = "file", m[1]
			}
		case open != nil:
			open.text += line + "\n"
		case strings.TrimSpace(line) != "":
			last = strings.TrimSpace(line)
		}
	}
	kept := steps[:0]
	for _, s := range steps {
		if s.kind == "sh" || s.kind == "text" || s.kind == "file" {
			kept = append(kept, s)
		}
	}
	return kept
}
