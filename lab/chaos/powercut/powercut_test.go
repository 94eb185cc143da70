package powercut

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const processEnv = "TILTH_TEST_POWERCUT"

// TestMain lets this binary act as a recorded program.
func TestMain(m *testing.M) {
	if dir := os.Getenv(processEnv); dir != "" {
		if err := process(dir); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// process writes files in each of the supported ways. The test depends on when each is synced.
func process(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("data"), 0o755), os.Mkdir(at("data/in"), 0o755)); err != nil {
		return err
	}
	f, err := os.Create(at("data/in/temporary"))
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Repeat("a", 1000))
	err = errors.Join(err, f.Sync())
	_, err1 := f.WriteAt([]byte(strings.Repeat("b", 600)), 700)
	err = errors.Join(err, err1, f.Close(), os.Rename(at("data/in/temporary"), at("data/in/kept")), sync(at("data/in")))
	f, err1 = os.OpenFile(at("data/log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err = errors.Join(err, err1); err != nil {
		return err
	}
	gone, err := os.Create(at("data/gone"))
	if err := errors.Join(err, os.Remove(at("data/gone"))); err != nil {
		return err
	}
	_, err = gone.WriteString("nobody sees it")
	err = errors.Join(err, gone.Sync(), gone.Close())
	_, err1 = f.WriteString("one")
	err = errors.Join(err, err1)
	_, err1 = f.WriteString("two")
	return errors.Join(err, err1, f.Truncate(5), f.Close(), sync(at("data")), os.Link(at("data/log"), at("data/copy")), os.Remove(at("data/log")))
}

func sync(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func record(t *testing.T) *Trace {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"="+dir)
	trace, err := Run(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// files returns the contents of a folder's files.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[name] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func TestDiskKeepsSyncedDataAndAnyOfTheRest(t *testing.T) {
	trace := record(t)
	d := trace.NewDisk()
	if err := d.Advance(trace.Len()); err != nil {
		t.Fatal(err)
	}
	a, b := strings.Repeat("a", 700), strings.Repeat("b", 600)
	left := func(l Loss) map[string]string {
		dir := filepath.Join(t.TempDir(), "left")
		if err := d.Write(dir, "data", l); err != nil {
			t.Fatal(err)
		}
		return files(t, dir)
	}
	if got := left(Loss{}); !maps.Equal(got, map[string]string{"in/kept": a + b, "copy": "onetw"}) {
		t.Errorf("with nothing lost there are %q", got)
	}
	all := Loss{map[Part]bool{}, 512}
	for _, p := range d.parts("data", 512) {
		all.parts[p] = true
	}
	if got := left(all); !maps.Equal(got, map[string]string{"in/kept": a + strings.Repeat("a", 300), "log": ""}) {
		t.Errorf("with all lost that can be there are %q", got)
	}
	// The file's bytes 700 to 1300 were overwritten: in the sectors from 512 and 1024, and by its growth.
	logs, kept := map[string]bool{}, map[string]bool{}
	for seed := range uint64(500) {
		got := left(d.Draw(rand.New(rand.NewPCG(seed, 0)), "data"))
		_, first := got["log"]
		_, second := got["copy"]
		logs[got["log"]+got["copy"]] = true
		if !first && !second {
			logs["none"] = true
		}
		kept[got["in/kept"]] = true
	}
	zeros := strings.Repeat("\x00", 276)
	for _, want := range []string{a + b, a + b[:324] + zeros, a + b[:300], a + strings.Repeat("a", 300), a + strings.Repeat("a", 300) + zeros[:24] + b[:276]} {
		if !kept[want] {
			t.Errorf("a file of %d bytes that ends with %q is never left", len(want), want[max(0, len(want)-10):])
		}
	}
	for _, want := range []string{"", "one", "onetw", "onetwo", "\x00\x00\x00tw", "none"} {
		if !logs[want] {
			t.Errorf("a log with %q is never left, but %q", want, slices.Sorted(maps.Keys(logs)))
		}
	}
}

// TestCallThatBeganBeforeItsFileLostItsNameIsOfThatFile writes to and syncs files in one thread while another
// removes, renames and replaces them.
func TestCallThatBeganBeforeItsFileLostItsNameIsOfThatFile(t *testing.T) {
	file := func(name string) string { return escape("/r/data/" + name) }
	create := func(name string) string {
		return fmt.Sprintf("1 openat(AT_FDCWD<%s>, \"%s\", O_WRONLY|O_CREAT, 0644) = 3<%[2]s>\n", escape("/"), file(name))
	}
	write := func(thread int, name, data string) string {
		return fmt.Sprintf("%d write(3<%s>, \"%s\", %d", thread, file(name), escape(data), len(data))
	}
	resumed := func(thread int, call string, result int) string {
		return fmt.Sprintf("%d <... %s resumed>) = %d\n", thread, call, result)
	}
	const cut = " <unfinished ...>\n"
	calls := fmt.Sprintf("1 mkdirat(AT_FDCWD<%s>, \"%s\", 0755) = 0\n", escape("/"), escape("/r/data")) +
		create("removed") + create("renamed") + create("replaced") +
		write(2, "removed", "lost") + cut + write(3, "renamed", "kept") + cut + write(4, "replaced", "old") + cut +
		fmt.Sprintf("1 unlinkat(AT_FDCWD<%s>, \"%s\", 0) = 0\n", escape("/"), file("removed")) +
		fmt.Sprintf("1 renameat(AT_FDCWD<%s>, \"%s\", AT_FDCWD<%[1]s>, \"%[3]s\") = 0\n", escape("/"), file("renamed"), file("replaced")) +
		resumed(2, "write", 4) + resumed(3, "write", 4) + resumed(4, "write", 3)
	trace := &Trace{root: "/r"}
	if err := trace.read(strings.NewReader(calls)); err != nil {
		t.Fatal(err)
	}
	d := trace.NewDisk()
	if err := d.Advance(trace.Len()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "left")
	if err := d.Write(dir, "data", Loss{}); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !maps.Equal(got, map[string]string{"replaced": "kept"}) {
		t.Errorf("with nothing lost there are %q", got)
	}
}

func TestBytesOfATrace(t *testing.T) {
	for text, want := range map[string]string{"": "", `\x61`: "a", `\x61\x0a`: "a\n"} {
		if got, err := unhex(text); err != nil || string(got) != want {
			t.Errorf("%s is read as %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"abcd", `\x6`, `\x61\`, `\xzz`, `\x61abcd`} {
		if got, err := unhex(text); err == nil {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func TestFailureIsShrunkToWhatItTakes(t *testing.T) {
	trace := record(t)
	d := trace.NewDisk()
	if err := d.Advance(trace.Len()); err != nil {
		t.Fatal(err)
	}
	all := Loss{map[Part]bool{}, 512}
	for _, p := range d.parts("data", 512) {
		all.parts[p] = true
	}
	fails := func(l Loss) bool {
		dir := filepath.Join(t.TempDir(), "left")
		if err := d.Write(dir, "data", l); err != nil {
			t.Fatal(err)
		}
		return files(t, dir)["copy"] == "\x00\x00\x00tw"
	}
	maps.DeleteFunc(all.parts, func(p Part, _ bool) bool {
		return p.node.names != nil || p.sector == newSize || p.change == 1 && p.node.path == "data/log"
	})
	if !fails(all) {
		t.Fatal("it does not fail")
	}
	if got := d.Shrink(all, fails).Tell(); strings.Count(got, "\n") != 0 || !strings.HasSuffix(got, "/data/log, of a write of 3 bytes at 0 the sector at 0") {
		t.Errorf("it takes %q", got)
	}
}
