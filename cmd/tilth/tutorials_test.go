package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// shellBlock is commands in a tutorial, which make tutorials runs.
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// called is a call of the program at the beginning of a command, and its words up to what is the shell's.
	called = regexp.MustCompile(`(?m)(?:^|[;|] |until )(?:[A-Z_]+=\S+ )*tilth ((?:'[^']*'|"[^"]*"|[^'"&|;<>\n])*)`)
	word   = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// Tutorials are followed rarely, since they take minutes; that their flags are there is known always.
func TestCommandLinesOfTutorialsAreUnderstood(t *testing.T) {
	files, err := filepath.Glob("../../docs/tutorials/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		for _, block := range shellBlock.FindAllStringSubmatch(string(readFile(t, "docs", "tutorials", filepath.Base(file))), -1) {
			for _, call := range called.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", ""), -1) {
				args := word.FindAllString(strings.TrimSuffix(strings.TrimSpace(call[1]), " 2"), -1)
				for i := range args {
					args[i] = strings.Trim(args[i], `'"`)
				}
				found++
				c, rest, err := newRoot(&app{}).Find(args)
				if err == nil && c.HasParent() {
					if err = c.ParseFlags(rest); err == nil {
						err = c.ValidateArgs(c.Flags().Args())
					}
				}
				if err != nil || !c.HasParent() {
					t.Errorf("%s: tilth %s: %v", filepath.Base(file), strings.Join(args, " "), err)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d command lines were found", found)
	}
}
