package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// installRunner runs the script that installs a runner into an image's root.
func installRunner(t *testing.T, root string, args ...string) (said string, err error) {
	t.Helper()
	script := filepath.Join("..", "..", "deploy", "install-runner.sh")
	out, err := exec.CommandContext(t.Context(), "sh", append([]string{script, "--root", root}, args...)...).CombinedOutput()
	return string(out), err
}

// below returns the contents and modes of the files in a folder.
func below(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestInstallAndUninstallRunner(t *testing.T) {
	given, root := t.TempDir(), t.TempDir()
	put(t, given, "tilth", []byte("#!/bin/sh\necho tilth version v1.2.0\n"))
	put(t, given, "secret", []byte("a token"))
	args := []string{"--program", given + "/tilth", "--tracker", "t:9190", "--token", given + "/secret", "--label", "rack=3", "--label", "a=b c"}
	if said, err := installRunner(t, root, args...); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	first := below(t, root)
	if got := first["/etc/tilth/runner.token"]; got != "-rw-r----- a token" {
		t.Errorf("the token is %q", got)
	}
	settings := "tracker: \"t:9190\"\ntoken-file: /etc/tilth/runner.token\nlabel:\n  \"rack\": \"3\"\n  \"a\": \"b c\"\n"
	if got := first["/etc/tilth/runner.yaml"]; !strings.HasSuffix(got, settings) {
		t.Errorf("the settings are %q", got)
	}
	if said, err := installRunner(t, root, args...); err != nil || !maps.Equal(first, below(t, root)) {
		t.Errorf("installed again: %v\n%s", err, said)
	}
	if said, err := installRunner(t, root, append(args, "--update-key", given+"/secret")...); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if got := below(t, root)["/etc/systemd/system/tilth-runner.service.d/board.conf"]; !strings.Contains(got, "StateDirectory=tilth-runner\n") {
		t.Errorf("a runner that replaces its program may not write it: %s", got)
	}
	verifyUnit(t, root)
	if said, err := installRunner(t, root, "--uninstall"); err != nil || len(below(t, root)) != 0 {
		t.Errorf("%v\n%s\nleft are %v", err, said, below(t, root))
	}
}

// verifyUnit checks the unit and its drop-ins with systemd-analyze.
func verifyUnit(t *testing.T, root string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Logf("the unit is not verified: %v", err)
		return
	}
	unit := filepath.Join(root, "etc/systemd/system/tilth-runner.service")
	extra := unit + ".d/board.conf"
	text, err := os.ReadFile(extra)
	if err != nil {
		t.Fatal(err)
	}
	installed := strings.ReplaceAll(string(text), "/var/lib/tilth-runner/", root+"/var/lib/tilth-runner/")
	if err := os.WriteFile(extra, []byte(installed), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(l string) bool { return !strings.Contains(l, "tilth-runner") })
	if err != nil || len(lines) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestInstallRunnerRefusesBadOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"where is the tracker?":           {},
		"--label rack: want KEY=VALUE":    {"--tracker", "t:9190", "--label", "rack"},
		"want a text without quotes":      {"--tracker", "t:9190\"\nname: x"},
		"unknown option --lable":          {"--lable", "rack=3"},
		"--tracker wants a value":         {"--tracker"},
		"there is no file /nowhere/token": {"--tracker", "t:9190", "--program", "/bin/true", "--token", "/nowhere/token"},
		"no program /nowhere/tilth":       {"--tracker", "t:9190", "--program", "/nowhere/tilth"},
	} {
		if said, err := installRunner(t, t.TempDir(), args...); err == nil || !strings.Contains(said, want) {
			t.Errorf("%v: %v\n%s", args, err, said)
		}
	}
}
