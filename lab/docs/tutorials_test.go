package main

import (
	"net"
	"strings"
	"testing"
)

const tutorial = "# Title\n\nSave this as `a/b.txt`:\n\n```python\nhello 1.5\n```\n\n```sh\ncat a/b.txt\nsleep 60 &\n```\n\nIt prints\n\n" +
	"```text\n...\nhello 2.5\n```\n\n```console\nfalse\n```\n"

func TestTutorialIsFollowed(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"as it is":                {"", "", ""},
		"what is not printed":     {"hello 2.5", "hallo 2", `17: the commands before do not print "hallo 2"`},
		"a command that fails":    {"cat a/b.txt", "cat a/c.txt", "10: exit status 1"},
		"a file without a name":   {"`a/b.txt`:", "`a/b.txt`", "10: exit status 1"},
		"a command in a pipe":     {"cat a/b.txt", "false | cat", "10: exit status 1"},
		"a block of another kind": {"```python", "```pithon", `5: a block of the unknown kind "pithon"`},
		"a block without an end":  {"false\n```\n", "false\n", "21: the block does not end"},
		"a block in a block":      {"hello 1.5\n```\n", "hello 1.5\n", "8: a block begins in the one of line 5"},
		"no commands":             {"```sh", "```console", "1: no block of the kind sh"},
		"what must not be found":  {"cat a/b.txt", "[ -e ~/.local ]", "10: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := stepsOf(strings.Replace(tutorial, c.old, c.new, 1))
			if err == nil {
				err = follow(t.Context(), t.TempDir(), steps, false)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

func TestLinesAreAlikeWhateverTheirNumbers(t *testing.T) {
	for a, b := range map[string]string{
		"took 1.5 s":      "took   20 ms",
		"in 2.00 s: done": "in 932 ms: done",
		"job-1 is done":   "job-7f is done",
		"  conv2d  56x9":  "conv2d 1x1",
		"...  alice":      "skqczscq  alice",
		"alice ...":       "alice a b",
	} {
		if !alike(a, b) {
			t.Errorf("%q and %q are not alike", a, b)
		}
	}
	for a, b := range map[string]string{
		"took 1.5 s":               "took x s",
		"a b":                      "a b c",
		"wrote it: 4 of 4 tuned":   "wrote it: 0 of 4 tuned",
		"leases: 2 done, 0 failed": "leases: 2 done, 9 failed",
		"class 238":                "class 239",
	} {
		if alike(a, b) {
			t.Errorf("%q and %q are alike", a, b)
		}
	}
}

func TestPortsInUseAreNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	steps := []step{{line: 7, kind: "sh", text: "tilth tracker --listen " + at + "\n"}}
	if err := free(t.Context(), steps); err == nil || !strings.HasPrefix(err.Error(), "7: port "+at[len("127.0.0.1:"):]+" is needed: ") {
		t.Errorf("%v; want the line and the port", err)
	}
	l.Close()
	if err := free(t.Context(), steps); err != nil {
		t.Error(err)
	}
}
