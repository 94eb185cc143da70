package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDpkgReadsPackage(t *testing.T) {
	p := debianPackage{
		fields: [][2]string{
			{"Package", "example"}, {"Version", "1.0"}, {"Architecture", "amd64"}, {"Maintainer", "Someone <someone@example.com>"},
			{"Description", "an example\n of a package"},
		},
		scripts: map[string]string{"postinst": "#!/bin/sh\nset -e\n", "prerm": "#!/bin/sh\nset -e\n"},
		files: []file{
			{Name: "usr/bin/example", Mode: 0o755, Data: []byte("#!/bin/sh\necho hello\n")},
			{Name: "usr/share/doc/example/odd", Mode: 0o644, Data: []byte("odd")},
		},
	}
	dir := t.TempDir()
	packed, err := p.write(time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "example.deb", packed)
	for _, ask := range []struct{ args, want string }{
		{"--info FILE", "Installed-Size: 7"},
		{"--info FILE postinst", "set -e"},
		{"--contents FILE", "-rwxr-xr-x 0/0              21 "},
		{"--extract FILE DIR", ""},
		{"--control FILE DIR/control", ""},
	} {
		args := strings.Fields(strings.NewReplacer("FILE", filepath.Join(dir, "example.deb"), "DIR", dir).Replace(ask.args))
		c := exec.CommandContext(t.Context(), "dpkg-deb", args...)
		c.Env = append(os.Environ(), "TZ=UTC")
		if said, err := c.CombinedOutput(); err != nil || !strings.Contains(string(said), ask.want) {
			t.Errorf("dpkg-deb %s: %v\n%s\nwant %q", ask.args, err, said, ask.want)
		}
	}
	if said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "usr/bin/example")).Output(); err != nil || string(said) != "hello\n" {
		t.Errorf("the program: %v, %q", err, said)
	}
	c := exec.CommandContext(t.Context(), "md5sum", "-c", "--quiet", "control/md5sums")
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Errorf("md5sums: %v\n%s", err, said)
	}
}

func TestDebianVersionOrder(t *testing.T) {
	when := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before := ""
	for _, c := range []struct{ described, want string }{
		{"0a1b2c3", "0~20260501120000.g0a1b2c3"},
		{"v0.9.0", "0.9.0"},
		{"v1.0.0-rc.1", "1.0.0~rc.1"},
		{"v1.0.0-rc.1-2-g0a1b2c3", "1.0.0~rc.1+2.g0a1b2c3"},
		{"v1.0.0", "1.0.0"},
		{"v1.0.0-3-g0a1b2c3", "1.0.0+3.g0a1b2c3"},
		{"v1.0.1", "1.0.1"},
	} {
		got, err := debianVersion(c.described, when)
		if err != nil || got != c.want {
			t.Errorf("%s gives %q, %v; want %q", c.described, got, err, c.want)
		}
		if before != "" && exec.CommandContext(t.Context(), "dpkg", "--compare-versions", before, "lt", got).Run() != nil {
			t.Errorf("to Debian %s is not before %s", before, got)
		}
		before = got
	}
	for _, wrong := range []string{"", "unknown", "1.0", "v1.0 ", "release"} {
		if got, err := debianVersion(wrong, when); err == nil {
			t.Errorf("%q gives %s", wrong, got)
		}
	}
}
