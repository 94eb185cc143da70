package main

import (
	"context"
	"strings"
	"testing"
)

const tutorial = "# Title\n\nSave this as `a/b.txt`:\n\n```python\nhello 1\n```\n\n```sh\ncat a/b.txt\nsleep 60 &\n```\n\nIt prints\n\n" +
	"```text\n...\nhello 2\n```\n\n```console\nfalse\n```\n"

func TestATutorialIsFollowed(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"as it is":               {"", "", ""},
		"what is not printed":    {"hello 2", "hallo 2", `17: the commands before do not print "hallo 2"`},
		"a command that fails":   {"cat a/b.txt", "cat a/c.txt", "10: exit status 1"},
		"a file without a name":  {"`a/b.txt`:", "`a/b.txt`", "10: exit status 1"},
		"a command in a pipe":    {"cat a/b.txt", "false | cat", "10: exit status 1"},
		"what must not be found": {"cat a/b.txt", "[ -e ~/.local ]", "10: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := follow(context.Background(), t.TempDir(), stepsOf(strings.Replace(tutorial, c.old, c.new, 1)), false)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestLinesAreAlikeWhateverTheirNumbers(t *testing.T) {
	for a, b := range map[string]string{
		"took 1.5 s":     "took   20 ms",
		"job-1 is done":  "job-7f is done",
		"  conv2d  56x9": "conv2d 1x1",
		"...  alice":     "skqczscq  alice",
		"alice ...":      "alice a b",
	} {
		if !alike(a, b) {
			t.Errorf("%q and %q are not alike", a, b)
		}
	}
	if alike("took 1.5 s", "took x s") || alike("a b", "a b c") {
		t.Error("lines with other words are alike")
	}
}
