package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// example returns a release whose program is a script that prints its version.
func example(t *testing.T) (dir, archive string) {
	t.Helper()
	dir = t.TempDir()
	sums := ""
	for _, suffix := range []string{"", "-static"} {
		p := program{arch: runtime.GOARCH, static: suffix != ""}
		name := p.name("v1.2.0")
		packed, err := tarGz("", []file{
			{Name: name + "/tilth", Mode: 0o755, Data: []byte("#!/bin/sh\necho tilth version v1.2.0" + suffix + "\n")},
		}, time.Unix(1_800_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		archive = name + ".tar.gz"
		put(t, dir, archive, packed)
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(packed), archive)
	}
	archive = program{arch: runtime.GOARCH}.name("v1.2.0") + ".tar.gz"
	put(t, dir, sumsFile, []byte(sums))
	script, err := os.ReadFile(filepath.Join("..", "..", "deploy", "install.sh"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "install.sh", script)
	return dir, archive
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// install runs the script with a temporary home and with path before the other folders of PATH. If script is empty,
// it is passed on standard input.
func install(t *testing.T, script, path string, args ...string) (home, said string, err error) {
	t.Helper()
	home = t.TempDir()
	line := []string{script}
	if script == "" {
		line = []string{"-s", "--"}
	}
	c := exec.CommandContext(t.Context(), "sh", append(line, args...)...)
	if script == "" {
		f, err := os.Open(filepath.Join("..", "..", "deploy", "install.sh"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c.Stdin = f
	}
	c.Env = []string{"HOME=" + home, "PATH=" + path + os.Getenv("PATH")}
	out, err := c.CombinedOutput()
	return home, string(out), err
}

// installed returns the installed program's version, or "" without a program.
func installed(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func TestInstallFromFolder(t *testing.T) {
	dir, _ := example(t)
	to := filepath.Join(t.TempDir(), "bin")
	_, said, err := install(t, filepath.Join(dir, "install.sh"), "", "--to", to)
	if err != nil || installed(t, to+"/tilth") != "tilth version v1.2.0" || !strings.Contains(said, "next: export PATH="+to+":$PATH && tilth doctor") {
		t.Fatalf("%v\n%s", err, said)
	}
	// Reinstall over the previous program while it runs, with its folder in PATH.
	if _, said, err = install(t, filepath.Join(dir, "install.sh"), to+":", "--to", to, "--static"); err != nil || !strings.HasSuffix(said, "next: tilth doctor\n") {
		t.Errorf("%v\n%s", err, said)
	}
	if got := installed(t, to+"/tilth"); got != "tilth version v1.2.0-static" {
		t.Errorf("installed is %q", got)
	}
	if left, err := filepath.Glob(to + "/.tilth*"); err != nil || left != nil {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestInstallFromServer(t *testing.T) {
	dir, archive := example(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	to := t.TempDir()
	if _, said, err := install(t, "", "", "--from", server.URL+"/", "--to", to); err != nil || installed(t, to+"/tilth") == "" {
		t.Fatalf("%v\n%s", err, said)
	}
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, archive) {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			data = data[:len(data)/2]
		}
		_, _ = w.Write(data) // the script detects a short response
	}))
	defer cut.Close()
	for name, c := range map[string]struct{ from, want string }{
		"no server":           {"http://127.0.0.1:1", "cannot fetch http://127.0.0.1:1/SHA256SUMS"},
		"another address":     {server.URL + "/elsewhere", "is it the address of a release?"},
		"an answer cut short": {cut.URL, "cannot fetch " + cut.URL + "/" + archive},
	} {
		refused(t, name, c.want, "", "", "--from", c.from)
	}
}

// refused checks that the script fails with a reason and installs nothing.
func refused(t *testing.T, name, want, script, path string, args ...string) {
	t.Helper()
	to := t.TempDir()
	_, said, err := install(t, script, path, append(args, "--to", to)...)
	if err == nil || !strings.Contains(said, want) {
		t.Errorf("%s: %v, %s; want %q", name, err, said, want)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%s: installed nevertheless: %v, %v", name, left, err)
	}
}

func TestInstallRefusesDamagedRelease(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir, archive string) error
		args   []string
		want   string
	}{
		"a changed archive": {func(dir, archive string) error {
			return os.WriteFile(filepath.Join(dir, archive), []byte("other"), 0o600)
		}, nil, "is damaged or was changed"},
		"an archive cut short": {func(dir, archive string) error {
			return os.Truncate(filepath.Join(dir, archive), 20)
		}, nil, "is damaged or was changed"},
		"a missing archive": {func(dir, archive string) error {
			return os.Remove(filepath.Join(dir, archive))
		}, nil, "has no tilth-v1.2.0-linux-"},
		"no digests": {func(dir, _ string) error { return os.Remove(filepath.Join(dir, sumsFile)) }, nil, "where is the release?"},
		"digests of nothing": {func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, sumsFile), []byte("<html>\n"), 0o600)
		}, nil, "has no archive for linux-"},
		"an unknown option": {nil, []string{"--form"}, "unknown option --form"},
		"a missing value":   {nil, []string{"--from"}, "--from wants a value"},
	} {
		dir, archive := example(t)
		if c.change != nil {
			if err := c.change(dir, archive); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasSuffix(c.want, "wants a value") {
			_, said, err := install(t, filepath.Join(dir, "install.sh"), "", c.args...)
			if err == nil || !strings.Contains(said, c.want) {
				t.Errorf("%s: %v, %s", name, err, said)
			}
			continue
		}
		refused(t, name, c.want, filepath.Join(dir, "install.sh"), "", c.args...)
	}
}

func TestInstallRefusesUnsupportedMachine(t *testing.T) {
	dir, _ := example(t)
	for _, c := range []struct{ uname, want string }{
		{"case $1 in -s) echo Linux;; *) echo sparc64;; esac", "no release for the architecture sparc64"},
		{"echo Darwin", "no release for Darwin"},
	} {
		tools := t.TempDir()
		put(t, tools, "uname", []byte("#!/bin/sh\n"+c.uname+"\n"))
		refused(t, c.uname, c.want, filepath.Join(dir, "install.sh"), tools+":")
	}
}

func TestInstallChecksSignature(t *testing.T) {
	dir, _ := example(t)
	script := filepath.Join(dir, "install.sh")
	for _, pair := range []string{"our", "other"} {
		runIn(t, dir, "minisign", "-G", "-W", "-p", pair+".pub", "-s", pair+".key")
	}
	key := filepath.Join(dir, "our.pub")
	refused(t, "no signature", "has no SHA256SUMS.minisig", script, "", "--key", key)
	runIn(t, dir, "minisign", "-S", "-s", "our.key", "-m", sumsFile)
	to := t.TempDir()
	if _, said, err := install(t, script, "", "--key", key, "--to", to); err != nil || installed(t, to+"/tilth") == "" {
		t.Errorf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, said, err := install(t, script, "", "--key", strings.Fields(string(text))[len(strings.Fields(string(text)))-1], "--to", to); err != nil {
		t.Errorf("with the key itself: %v\n%s", err, said)
	}
	refused(t, "another key", "is not signed with the key in", script, "", "--key", filepath.Join(dir, "other.pub"))
	sums, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, sumsFile, append(sums, '\n'))
	refused(t, "changed digests", "is not signed with the key in", script, "", "--key", key)
}

func runIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, said)
	}
}

func TestInstallScriptIsPortable(t *testing.T) {
	script := filepath.Join("..", "..", "deploy", "install.sh")
	for _, c := range [][]string{{"shellcheck", "-s", "sh", script}, {"sh", "-n", script}} {
		if said, err := exec.CommandContext(t.Context(), c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c[0], err, said)
		}
	}
}

// TestInstallWithNoexecTemporaryFolder simulates systems that mount temporary folders with noexec.
func TestInstallWithNoexecTemporaryFolder(t *testing.T) {
	dir, archive := example(t)
	to := filepath.Join(t.TempDir(), "bin")
	packed, err := tarGz("", []file{{Name: strings.TrimSuffix(archive, ".tar.gz") + "/tilth", Mode: 0o755,
		Data: []byte("#!/bin/sh\ncase \"$0\" in " + to + "/*) echo tilth version v1.2.0 ;; *) exit 126 ;; esac\n")}}, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, archive, packed)
	put(t, dir, sumsFile, fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(packed), archive))
	if _, said, err := install(t, filepath.Join(dir, "install.sh"), "", "--to", to); err != nil || installed(t, to+"/tilth") == "" {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestFailedInstallLeavesNothing simulates a full disk.
func TestFailedInstallLeavesNothing(t *testing.T) {
	dir, _ := example(t)
	to, path := t.TempDir(), t.TempDir()
	put(t, path, "cp", []byte("#!/bin/sh\ncase \"$2\" in */.tilth.*) echo part >\"$2\"; exit 1 ;; esac\nexec /bin/cp \"$@\"\n"))
	if _, said, err := install(t, filepath.Join(dir, "install.sh"), path+":", "--to", to); err == nil || !strings.Contains(said, "cannot write to "+to) {
		t.Errorf("%v\n%s", err, said)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 0 {
		t.Errorf("left are %v: %v", left, err)
	}
}
