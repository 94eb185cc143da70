package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands returns c and its visible subcommands, with their default flags.
func commands(c *cobra.Command) (all []*cobra.Command) {
	c.InitDefaultHelpFlag()
	all = append(all, c)
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			all = append(all, commands(sub)...)
		}
	}
	return all
}

// helpText returns what a command prints with --help or --help-all.
func helpText(t *testing.T, c *cobra.Command, flag string) string {
	t.Helper()
	var out strings.Builder
	c.SetOut(&out)
	if err := c.Flags().Set(flag, "true"); err != nil {
		t.Fatal(err)
	}
	if err := c.Help(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHelpFitsItsColumns(t *testing.T) {
	const exampleColumns = 99 // for examples and lists of subcommands
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		limit := helpColumns
		for line := range strings.Lines(helpText(t, c, helpAllFlag)) {
			switch line = strings.TrimSuffix(line, "\n"); {
			case strings.HasSuffix(line, "xamples:"), strings.HasSuffix(line, "ommands:"), slices.ContainsFunc(c.Groups(), func(g *cobra.Group) bool { return g.Title == line }):
				limit = exampleColumns
			case strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " "):
				limit = helpColumns
			}
			if utf8.RuneCountInString(line) > limit {
				t.Errorf("%s: more than %d columns: %s", c.CommandPath(), limit, line)
			}
		}
	}
}

func TestHelpStatesADefaultOnce(t *testing.T) {
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		text := strings.Join(strings.Fields(helpText(t, c, helpAllFlag)), " ")
		if twice := regexp.MustCompile(`\(default [^()]*\) \(default [^()]*\)`).FindString(text); twice != "" {
			t.Errorf("%s: help has two defaults: %s", c.CommandPath(), twice)
		}
	}
}

func TestHelpFitsOneScreen(t *testing.T) {
	const screen = 50
	root := newRoot(&app{stdout: io.Discard, stderr: io.Discard})
	for _, path := range [][]string{{"tune"}, {"compile"}, {"jobs", "submit"}, {"runner"}, {"tracker"}} {
		c, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		text := helpText(t, c, "help")
		if n := strings.Count(text, "\n"); n > screen {
			t.Errorf("%s --help has %d lines, want at most %d", c.CommandPath(), n, screen)
		}
		if want := c.CommandPath() + " --" + helpAllFlag + "\n"; !strings.HasSuffix(text, want) {
			t.Errorf("%s --help does not end with %q", c.CommandPath(), want)
		}
	}
}

func TestHelpExplainsEveryFlagOnce(t *testing.T) {
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		usage := helpText(t, c, helpAllFlag)
		for _, empty := range []string{"(default [])", "(default )"} {
			if strings.Contains(usage, empty) {
				t.Errorf("%s: a flag's help shows an empty default", c.CommandPath())
			}
		}
		explained := map[string]int{}
		for line := range strings.Lines(usage) {
			if name, is := strings.CutPrefix(line[min(len(line), len("  -x, ")):], "--"); is {
				explained[strings.Fields(name)[0]]++
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if n := explained[f.Name]; n != 1 && !f.Hidden && f.Name != helpAllFlag {
				t.Errorf("%s --%s is explained %d times", c.CommandPath(), f.Name, n)
			}
		})
	}
}

func TestSectionsNameExistingFlags(t *testing.T) {
	there := map[string]bool{}
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		c.Flags().VisitAll(func(f *pflag.Flag) { there[f.Name] = true })
	}
	seen := map[string]bool{}
	for _, section := range flagSections {
		for _, name := range section.flags {
			if !there[name] || seen[name] {
				t.Errorf("section %q has --%s, which no command has, or another section", section.title, name)
			}
			seen[name] = true
		}
	}
}

func TestRareFlagsExist(t *testing.T) {
	root := newRoot(&app{stdout: io.Discard, stderr: io.Discard})
	for path, flags := range rareFlags {
		c, _, err := root.Find(strings.Fields(path)[1:])
		if err != nil {
			t.Errorf("rareFlags: %v", err)
			continue
		}
		for _, name := range flags {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("rareFlags: %s has no --%s", path, name)
			}
		}
	}
}
