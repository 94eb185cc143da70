package main

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands are all that are not hidden, with their default flags.
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

func TestHelpFitsItsColumns(t *testing.T) {
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		for line := range strings.Lines(c.Long + "\n" + c.UsageString()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > helpColumns {
				t.Errorf("%s: more than %d columns: %s", c.CommandPath(), helpColumns, line)
			}
		}
	}
}

func TestHelpExplainsEveryFlagOnce(t *testing.T) {
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		for _, empty := range []string{"(default [])", "(default )"} {
			if strings.Contains(c.UsageString(), empty) {
				t.Errorf("%s: a flag's help says that it is empty by default", c.CommandPath())
			}
		}
		explained := map[string]int{}
		for line := range strings.Lines(c.UsageString()) {
			if name, is := strings.CutPrefix(line[min(len(line), len("  -x, ")):], "--"); is {
				explained[strings.Fields(name)[0]]++
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if n := explained[f.Name]; n != 1 && !f.Hidden {
				t.Errorf("%s --%s is explained %d times", c.CommandPath(), f.Name, n)
			}
		})
	}
}

func TestSectionsNameFlagsThatThereAre(t *testing.T) {
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
