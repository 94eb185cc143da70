package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const help = `Tune models.

Without --tracker it is [here]; see 'tilth jobs'.

  indented

Usage:
  tilth tune MODEL [flags]
  tilth tune COMMAND

Examples:
  tilth tune a.onnx \
    --time 5m

Commands:
  stop        End it
  to-f32      Make it wide

Nothing:

Flags:
      --all                end at a | b, and
                           go on
  -o, --output package     package to write

Output and help:
  -h, --help   help for tune

More of a command: tilth tune COMMAND --help
`

func TestHelpBecomesMarkdown(t *testing.T) {
	const want = "Tune models.\n\n" +
		"Without `--tracker` it is \\[here]; see `tilth jobs`.\n\n" +
		"```console\nindented\n```\n\n" +
		"```console\ntilth tune MODEL [flags]\ntilth tune COMMAND\n```\n" +
		"\n**Examples**\n\n```console\ntilth tune a.onnx \\\n  --time 5m\n```\n" +
		"\n**Commands**\n\n- [tilth tune stop](#tilth-tune-stop): End it\n- [tilth tune to-f32](#tilth-tune-to-f32): Make it wide\n" +
		"\n**Nothing**\n\n" +
		"\n**Flags**\n\n| flag | meaning |\n|---|---|\n| `--all` | end at a \\| b, and go on |\n| `-o, --output` *package* | package to write |\n" +
		"\n**Output and help**\n\n| flag | meaning |\n|---|---|\n| `-h, --help` | help for tune |\n\n"
	if got := markdownOf(command{name: "tilth tune", help: help}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestProtocolIsDescribedByItsComments(t *testing.T) {
	page, err := wirePage(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## JobService\n", "### WatchJob\n", "- answer: stream of [WatchJobResponse](#watchjobresponse)\n",
		"- roles: read-only, client, admin\n", "- in JSON: `DELETE /api/v1/jobs/{job_id}`\n", "| `JOB_STATE_QUEUED` | 1 | Set by SubmitJob, ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") && seen[line] {
			t.Errorf("two sections have one name, so that links to the second lead to the first: %s", line)
		}
		seen[line] = true
	}
}

func TestFieldsOfSchemasHaveTheirPaths(t *testing.T) {
	page, err := schemasPage("../../docs/schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## tilth compile --json\n", "| `weights.type` | string |", "| `[].flop_share` | number |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestDocumentsThatTextRefersToAreLinks(t *testing.T) {
	const want = "see [docs/a-b.md](../../a-b.md); (see [docs/c.md](../../c.md))"
	if got := linked("commands/tune.md", "see docs/a-b.md; (see docs/c.md)"); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestFolderWithOtherFilesIsLeftAlone(t *testing.T) {
	out := t.TempDir()
	pages := map[string]string{"a/b.md": "b"}
	for range 2 {
		if err := writePages(out, pages); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(out, "a", "c.txt")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writePages(out, pages); err == nil || !strings.Contains(err.Error(), other+" is not a page") {
		t.Errorf("%v; want the name of the file", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
