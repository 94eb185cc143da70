package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// flagSet returns flags of every kind that commands use.
func flagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.String("config", "", "")
	f.Bool("config-check", false, "")
	f.String("listen", "127.0.0.1:9190", "")
	f.String("data", "", "")
	f.Bool("insecure", false, "")
	f.Int("slots", 0, "")
	f.Uint32("max-streams", 1024, "")
	f.Float64("share", 0.5, "")
	f.Duration("max-stall", 2*time.Minute, "")
	f.IntSlice("threads", nil, "")
	f.StringSlice("host", nil, "")
	f.StringToString("label", nil, "")
	f.StringToInt("owner-max-jobs", nil, "")
	return f
}

func none(string) (string, bool) { return "", false }

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, is := vars[name]; return v, is }
}

func show(t *testing.T, settings []Setting) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, settings); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestEachSourceIsStrongerThanTheOneBefore compares the result with testdata/good/some.effective.
func TestEachSourceIsStrongerThanTheOneBefore(t *testing.T) {
	file := filepath.Join("testdata", "good", "some.yaml")
	flags := flagSet()
	if err := flags.Parse([]string{"--config", file, "--slots", "3"}); err != nil {
		t.Fatal(err)
	}
	settings, err := Apply(flags, environment(map[string]string{
		"TILTH_SLOTS": "2", "TILTH_LISTEN": ":2", "TILTH_INSECURE": "", "TILTH_UNKNOWN": "x", "TILTH_LABEL": "rack=4",
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := show(t, settings)
	expected, err := os.ReadFile(filepath.Join("testdata", "good", "some.effective"))
	if err != nil {
		t.Fatal(err)
	}
	if got != string(expected) {
		t.Errorf("got\n%swant\n%s", got, expected)
	}
}

// TestGoodFiles also checks that the printed configuration of a good file is equivalent to it.
func TestGoodFiles(t *testing.T) {
	for _, file := range files(t, "good") {
		flags := flagSet()
		if err := flags.Parse([]string{"--config", file}); err != nil {
			t.Fatal(err)
		}
		settings, err := Apply(flags, none)
		if err != nil {
			t.Error(err)
			continue
		}
		first := show(t, settings)
		again := filepath.Join(t.TempDir(), "again.yaml")
		if err := os.WriteFile(again, []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = flagSet()
		if settings, err = Apply(flags, environment(map[string]string{"TILTH_CONFIG": again})); err != nil {
			t.Errorf("%s, as it was printed: %v", file, err)
			continue
		}
		if second := show(t, settings); withoutSources(second) != withoutSources(first) {
			t.Errorf("%s, as it was printed:\n%sbecame\n%s", file, first, second)
		}
	}
}

func withoutSources(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		before, _, _ := strings.Cut(line, " #")
		out.WriteString(strings.TrimRight(before, " \n") + "\n")
	}
	return out.String()
}

func files(t *testing.T, kind string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", kind, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

// TestBadFiles compares the errors of the files in testdata/bad with the .txt files of the same names.
func TestBadFiles(t *testing.T) {
	for _, file := range files(t, "bad") {
		want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".txt")
		if err != nil {
			t.Error(err)
		}
		flags := flagSet()
		if err := flags.Parse([]string{"--config", file}); err != nil {
			t.Fatal(err)
		}
		_, err = Apply(flags, none)
		if err == nil || err.Error() != strings.TrimSpace(string(want)) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestBadVariables(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"TILTH_SLOTS":     {"many", `TILTH_SLOTS: "many": want a whole number`},
		"TILTH_MAX_STALL": {"10", `TILTH_MAX_STALL: "10": want a time such as 90s, 5m, 1h, 5min, 1h30m or 2d`},
		"TILTH_INSECURE":  {"yes", `TILTH_INSECURE: "yes": want true or false`},
		"TILTH_CONFIG":    {"none.yaml", `configuration: open none.yaml: no such file or directory`},
	} {
		if _, err := Apply(flagSet(), environment(map[string]string{name: c.text})); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestOnlyNamedFlagsAreReadFromTheEnvironment(t *testing.T) {
	flags := flagSet()
	vars := environment(map[string]string{"TILTH_LISTEN": ":1", "TILTH_SLOTS": "7"})
	if err := Environment(flags, vars, "slots", "not-there"); err != nil {
		t.Fatal(err)
	}
	if got := flags.Lookup("slots").Value.String() + " " + flags.Lookup("listen").Value.String(); got != "7 127.0.0.1:9190" {
		t.Errorf("got %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "listen: :1", "threads: [1, 2]\nlabel: {a: b}", "a: &x [*x]", "- 1", "? {a: b}\n: c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parse("f", text)
		if err != nil || v.checkKeys(flagSet()) != nil {
			return
		}
		flags := flagSet()
		flags.VisitAll(func(f *pflag.Flag) {
			if isSetting(f) {
				_, _ = set(f, v, none)
			}
		})
	})
}
