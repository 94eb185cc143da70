package update

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const claim = "[ \"$1\" = --version ] && echo tilth version v2.0.0 && exit\n"

// brought returns an updater whose downloaded program is a shell script.
func brought(t *testing.T, script string) *Updater {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	u, err := New(Config{
		Program: filepath.Join(dir, "tilth"), Version: "v1.0.0", Every: time.Minute, Trial: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.cfg.Program, []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	if u.digest, err = writeProgram(strings.NewReader("#!/bin/sh\n"+script), u.next()); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestOnlyAProgramsOwnFailureIsForGood(t *testing.T) {
	for script, forGood := range map[string]bool{
		claim + "exit 1":                       true,
		"echo tilth version v3.0.0":            true,
		"exit 1":                               true,
		claim + fmt.Sprint("exit ", ExitLater): false,
		claim + "kill -ILL $$":                 false,
		"kill -KILL $$":                        false,
	} {
		u := brought(t, script)
		failed := u.Try(t.Context(), "v2.0.0", nil)
		if failed == nil {
			t.Fatalf("%q passes", script)
		}
		u.Refuse("v2.0.0", failed)
		wanted, err := u.wanted("v2.0.0")
		if wanted == forGood || !u.tried.holds("v2.0.0") {
			t.Errorf("%q is wanted afterwards: %v, %v", script, wanted, err)
		}
		if version, why := u.Refused(); version != "v2.0.0" || why == "" {
			t.Errorf("%q: %q failed: %q", script, version, why)
		}
	}
	u := brought(t, claim+"sleep 1000")
	u.cfg.Trial = time.Second
	failed := u.Try(t.Context(), "v2.0.0", nil)
	if later := (laterError{}); !errors.As(failed, &later) {
		t.Errorf("after its time: %v", failed)
	}
}

func TestTrialEndsWithWhatItStarted(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	u := brought(t, claim+"sleep 9999 & echo $! >"+pid+"; exit 1")
	if err := u.Try(t.Context(), "v2.0.0", nil); err == nil {
		t.Error("it passes")
	}
	var left int
	data, err := os.ReadFile(pid)
	if _, scanErr := fmt.Sscan(string(data), &left); err != nil || scanErr != nil {
		t.Fatal(err, scanErr)
	}
	for state := ""; state != "Z" && state != "gone"; time.Sleep(time.Millisecond) { // until the test times out
		state = "gone"
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left)); err == nil {
			state = strings.Fields(string(stat))[2]
		}
	}
}

func TestProgramOutputIsStoredAsPlainText(t *testing.T) {
	u := brought(t, claim+"printf 'a\\377\\033[1m\\000b' >&2; exit 1")
	u.Refuse("v2.0.0", u.Try(t.Context(), "v2.0.0", nil))
	if _, why := u.Refused(); !strings.HasSuffix(why, "a\uFFFD [1m b") {
		t.Errorf("%q", why)
	}
	for limit := range 8 {
		if text := plain("é€é€", limit); !utf8.ValidString(text) || len(text) > limit {
			t.Errorf("%q", text)
		}
	}
}

func TestRefusedVersionsAreBounded(t *testing.T) {
	u := brought(t, "")
	if err := os.Remove(u.next()); err != nil { // deleting it is not an error
		t.Fatal(err)
	}
	for k := range maxRefused + 3 {
		u.Refuse(fmt.Sprintf("v2.0.%d", k), errors.New(strings.Repeat("x ", maxWhy)))
	}
	if all := u.failures(); len(all) != maxRefused || all[0].version != "v2.0.3" || all[maxRefused-1].version != "v2.0.18" {
		t.Errorf("%v", all)
	}
	if err := os.Remove(u.refused()); err != nil {
		t.Fatal(err)
	}
	if wanted, err := u.wanted("v2.0.18"); !wanted {
		t.Error(err)
	}
	if err := os.Mkdir(u.refused(), 0o755); err != nil { // writing to it fails
		t.Fatal(err)
	}
	u.Refuse("v3.0.0", errors.New("x"))
	if wanted, _ := u.wanted("v3.0.0"); wanted {
		t.Error("what could not be written is forgotten")
	}
}

func TestProgramIsReplacedOnce(t *testing.T) {
	u := brought(t, "exit")
	if err := u.Replace(); err != nil {
		t.Fatal(err)
	}
	if _, err := writeProgram(strings.NewReader("#!/bin/sh\nexit"), u.next()); err != nil { // another runner downloads again
		t.Fatal(err)
	}
	if err := u.Replace(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{u.cfg.Program: "#!/bin/sh\nexit", u.old(): "old"} {
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%s has %q: %v", path, data, err)
		}
	}
	if err := os.WriteFile(u.next(), []byte("planted"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := u.Replace(); err == nil || !strings.Contains(err.Error(), "was changed by another program") {
		t.Errorf("a changed program: %v", err)
	}
}

func TestUpdatesOfAProgramAreExclusive(t *testing.T) {
	u := brought(t, "")
	other := &Updater{cfg: u.cfg}
	if got, err := u.lock(); !got {
		t.Fatal(err)
	}
	if got, err := other.lock(); got || err != nil {
		t.Errorf("both are at it: %v", err)
	}
	u.Refuse("v2.0.0", errors.New("x"))
	if got, err := other.lock(); !got {
		t.Error(err)
	}
	other.unlock()
}

func TestOthersMayNotReplaceTheProgram(t *testing.T) {
	u := brought(t, "")
	if err := os.Chmod(filepath.Dir(u.cfg.Program), 0o775); err != nil {
		t.Fatal(err)
	}
	if _, err := New(u.cfg); err == nil || !strings.Contains(err.Error(), "others may write to") {
		t.Error(err)
	}
	u.cfg.Program = "/proc/1/tilth" // in a folder owned by an untrusted user
	if _, err := New(u.cfg); err == nil {
		t.Error("a folder of the kernel's may be written to")
	}
}

func TestPausesGrow(t *testing.T) {
	var p pause
	last := time.Now()
	for range 200 {
		p.failed("v2.0.0", time.Minute)
		if !p.holds("v2.0.0") || p.holds("v3.0.0") || p.until.Before(last) || time.Until(p.until) > maxPause {
			t.Fatalf("until %s", p.until)
		}
		last = p.until.Add(-time.Second) // the clock's own steps
	}
}
