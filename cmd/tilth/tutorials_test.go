package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// shellBlock matches commands in a tutorial, which make tutorials runs.
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	// called matches a call of the program and its arguments, up to shell syntax.
	called = regexp.MustCompile(`(?m)(?:^|[;|] |until )(?:[A-Z_]+=\S+ )*tilth ((?:'[^']*'|"[^"]*"|[^'"&|;<>\n])*)`)
	word   = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// TestCommandLinesOfTutorialsAreUnderstood checks the flags in tutorials, which are rarely run because they take
// minutes.
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
