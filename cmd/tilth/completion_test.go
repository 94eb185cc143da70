package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completed returns the completions of the last word of a command line, and the directive on files.
func completed(t *testing.T, line ...string) (words []string, directive string) {
	t.Helper()
	var out strings.Builder
	if status := run(append([]string{cobra.ShellCompRequestCmd}, line...), strings.NewReader(""), &out, io.Discard); status != exitDone {
		t.Fatalf("%q: exit status %d", line, status)
	}
	words = strings.Split(strings.TrimSpace(out.String()), "\n")
	return words[:len(words)-1], words[len(words)-1]
}

func TestShellsCompleteArgumentsAndValues(t *testing.T) {
	for _, c := range []struct {
		line      string
		words     string
		directive cobra.ShellCompDirective
	}{
		{"tasks ", "onnx onnx.gz", cobra.ShellCompDirectiveFilterFileExt},
		{"tune a.onnx ", "onnx onnx.gz", cobra.ShellCompDirectiveFilterFileExt},
		{"run ", "tar", cobra.ShellCompDirectiveFilterFileExt},
		{"run p.tar ", "", cobra.ShellCompDirectiveNoFileComp},
		{"run p.tar --inputs ", "npz", cobra.ShellCompDirectiveFilterFileExt},
		{"check ", "", cobra.ShellCompDirectiveFilterDirs},
		{"tracker --data ", "", cobra.ShellCompDirectiveFilterDirs},
		{"tracker token create ", "--role --tokens", cobra.ShellCompDirectiveNoFileComp},
		{"jobs list ", "", cobra.ShellCompDirectiveNoFileComp},
		{"jobs list --state queued,d", "queued,done", cobra.ShellCompDirectiveNoFileComp},
		{"tune a.onnx --numerics ", "strict default fast", cobra.ShellCompDirectiveNoFileComp},
		{"tune a.onnx --target x86-64-v", "x86-64-v2 x86-64-v3 x86-64-v4", cobra.ShellCompDirectiveDefault},
		{"tune a.onnx --target raspberry-pi-4", "raspberry-pi-4", cobra.ShellCompDirectiveDefault},
		{"tune a.onnx --log ", "", cobra.ShellCompDirectiveDefault},
		{"tune a.onnx --trials ", "", cobra.ShellCompDirectiveNoFileComp},
		{"records import ", "", cobra.ShellCompDirectiveDefault}, // logs may have any name
		{"model resnet-1", "resnet-101 resnet-152 resnet-18", cobra.ShellCompDirectiveNoFileComp},
	} {
		got, directive := completed(t, strings.Split(c.line, " ")...)
		for i, word := range got {
			got[i], _, _ = strings.Cut(word, "\t")
		}
		if joined := strings.Join(got, " "); joined != c.words || directive != fmt.Sprintf(":%d", c.directive) {
			t.Errorf("%q is completed to %q, %s", c.line, joined, directive)
		}
	}
}

// TestFlagsOfFewValuesAreCompleted compares the completions of flags with the values in their help.
func TestFlagsOfFewValuesAreCompleted(t *testing.T) {
	there := map[string]string{}
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		c.Flags().VisitAll(func(f *pflag.Flag) { there[f.Name] += f.Usage })
	}
	for name, values := range flagValues {
		for _, value := range values {
			if !strings.Contains(there[name], value) {
				t.Errorf("--%s %s is completed, but the help does not tell of it: %q", name, value, there[name])
			}
		}
	}
}

// TestArgumentsAreOfAKnownKind requires a completion for every kind of argument.
func TestArgumentsAreOfAKnownKind(t *testing.T) {
	known := []string{"JOB", "BOARD", "DEVICE", "NAME", "ID", "BATCH", "DIR", "command"} // cobra completes the command of help
	files := []string{"FILE", "FROM", "TO", "SET|FOLDER", "MODEL"}
	for _, c := range commands(newRoot(&app{stdout: io.Discard, stderr: io.Discard})) {
		for _, word := range strings.Fields(c.Use)[1:] {
			word = strings.Trim(word, "[].=")
			if !slices.Contains(known, word) && !slices.Contains(files, word) && fileNames[word] == nil && !strings.HasPrefix(word, "-") {
				t.Errorf("nothing says how %s of %s is completed", word, c.CommandPath())
			}
		}
	}
}
