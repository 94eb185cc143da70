package gpu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCasesAreCounted also checks the first failure.
func TestCasesAreCounted(t *testing.T) {
	counts, failure := counted([]byte(`{"case":"a","status":"pass"}
{"case":"b","status":"fail","reason":"0.5 off"}
{"case":"c","status":"fail","reason":"crash"}
`))
	if counts["pass"] != 1 || counts["fail"] != 2 || failure != "b: 0.5 off" {
		t.Errorf("%v, %q", counts, failure)
	}
}

// TestPartsHaveAllCases checks that each case is in exactly one part.
func TestPartsHaveAllCases(t *testing.T) {
	dir, most := t.TempDir(), 13
	for k := range most {
		if err := os.Mkdir(filepath.Join(dir, string(rune('a'+k))), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var all []string
	for part := range caseParts {
		folders, err := every(dir, caseParts, part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, folders...)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != most {
		t.Errorf("the parts have %v", all)
	}
}

// program returns a bench whose program is a script, with the script's folder in PATH.
func program(t *testing.T, text string) *suite {
	t.Helper()
	dir := t.TempDir()
	script(t, filepath.Join(dir, "tilth"), text)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return &suite{options: options{tilth: filepath.Join(dir, "tilth"), work: dir, out: dir, sandbox: "required", cases: dir}, ledger: &ledger{}}
}

// TestSandboxThatFailsIsLeftOut also checks the reason in the result.
func TestSandboxThatFailsIsLeftOut(t *testing.T) {
	for name, refusal := range map[string]string{
		"the search fails":    `echo 'the driver cannot be opened' >&2; exit 1`,
		"all candidates fail": `echo '{"trials": 8, "tasks": [{"errors": {"device": 8}, "messages": {"device": "the driver cannot be opened"}}]}'`,
	} {
		t.Run(name, func(t *testing.T) {
			b := program(t, `case "$*" in *'--sandbox required'*) `+refusal+`;; tune*) echo '{"trials": 8}';; esac`+"\n")
			r := newResult()
			if err := probeSandbox(t.Context(), b, &r); err != nil {
				t.Fatal(err)
			}
			if r.Notes["mode"] != "off" || !strings.Contains(r.Notes["why"], "the driver cannot be opened") {
				t.Errorf("the notes are %v", r.Notes)
			}
		})
	}
	t.Run("nothing can be measured", func(t *testing.T) {
		r := newResult()
		if err := probeSandbox(t.Context(), program(t, `case "$1" in tune) echo 'no card' >&2; exit 1;; esac`+"\n"), &r); err == nil {
			t.Errorf("the notes are %v", r.Notes)
		}
	})
}

// TestCheckerResults distinguishes a finding, an unsupported device, and a program that fails.
func TestCheckerResults(t *testing.T) {
	for name, c := range map[string]struct{ checker, want, fails string }{
		"nothing":           {"exit 0", "nothing found", ""},
		"a finding":         {"echo '= Invalid __global__ write'; exit 86", "FOUND: = Invalid __global__ write", ""},
		"an unknown device": {"echo '= Error: Device not supported'; exit 1", "skipped: it does not support the device", ""},
		"a failure":         {"echo '= crashed'; exit 3", "", "= crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := program(t, "")
			script(t, filepath.Join(b.work, checker), `[ "$1" = --version ] && exit; `+c.checker+"\n")
			r := newResult()
			err := memoryChecker(t.Context(), b, &r)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || len(r.Notes) != 6 || r.Notes["bert-tiny fast racecheck"] != c.want {
				t.Errorf("the notes are %v, and the error %v", r.Notes, err)
			}
		})
	}
}
