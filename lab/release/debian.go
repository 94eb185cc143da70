package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	home           = "https://github.com/tilth-dev/tilth"
	projectLicence = "Apache-2.0"
	maintainer     = "Tilth developers <tilth-dev@users.noreply.github.com>"
)

const description = `tune neural-network kernels on real devices
 Tilth splits an ONNX model into fused subgraphs, generates candidate programs
 for each, compiles them, and verifies and times them on the device. It
 remembers the best program for each subgraph, and compiles the model into a
 package that needs no interpreter.
 .
 One command does this on a laptop. As separate processes, the same services
 make a farm of boards; their systemd units are installed, and not enabled.`

// debianPostinst creates the user of the services. After an upgrade it restarts those that run.
const debianPostinst = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
	if ! getent passwd tilth >/dev/null; then
		adduser --system --group --quiet --home /var/lib/tilth --no-create-home tilth
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -n "$2" ]; then
			deb-systemd-invoke try-restart %[1]s >/dev/null || true
		fi
	fi
fi
`

const debianPrerm = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop %[1]s >/dev/null || true
fi
`

// debianPostrm does not remove the user, who may own remaining files.
const debianPostrm = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/cache/tilth
fi
`

// debian returns the Debian package of a program.
func (s *source) debian(p program, common shared) (debianPackage, error) {
	version, err := debianVersion(s.version, s.when)
	if err != nil {
		return debianPackage{}, err
	}
	units, err := s.units("/usr/bin")
	if err != nil {
		return debianPackage{}, err
	}
	var services []string
	units = slices.DeleteFunc(units, func(f file) bool { return !strings.HasSuffix(f.Name, ".service") })
	for _, u := range units {
		services = append(services, u.Name)
	}
	listed := strings.Join(services, " ")
	return debianPackage{
		fields: [][2]string{
			{"Package", "tilth"}, {"Version", version}, {"Architecture", p.arch}, {"Maintainer", maintainer},
			{"Depends", "libc6, adduser"},
			{"Recommends", "clang-19 | clang, lld-19 | lld, ca-certificates"},
			{"Section", "science"}, {"Priority", "optional"}, {"Homepage", home}, {"Description", description},
		},
		scripts: map[string]string{
			"postinst": fmt.Sprintf(debianPostinst, listed), "prerm": fmt.Sprintf(debianPrerm, listed), "postrm": debianPostrm,
		},
		files: s.debianFiles(version, p, units, common),
	}, nil
}

func (s *source) debianFiles(version string, p program, units []file, common shared) []file {
	files := []file{
		{Name: "usr/bin/tilth", Mode: 0o755, Data: p.data},
		{Name: "usr/share/doc/tilth/copyright", Mode: 0o644, Data: s.copyright(p.modules)},
		{Name: "usr/share/doc/tilth/changelog.gz", Mode: 0o644, Data: gzipped(s.debianChangelog(version))},
		{Name: "usr/share/lintian/overrides/tilth", Mode: 0o644, Data: []byte(overrides)},
	}
	for _, d := range common.documents {
		if d.Name == "README.md" || d.Name == "CHANGELOG.md" {
			d.Name = "usr/share/doc/tilth/" + d.Name + ".gz"
			d.Data = gzipped(d.Data)
			files = append(files, d)
		}
	}
	for i, place := range []string{
		"bash-completion/completions/tilth", "zsh/vendor-completions/_tilth", "fish/vendor_completions.d/tilth.fish",
	} {
		files = append(files, file{Name: "usr/share/" + place, Mode: 0o644, Data: common.completions[i].Data})
	}
	for _, m := range common.manual {
		files = append(files, file{Name: "usr/share/man/man1/" + m.Name + ".gz", Mode: 0o644, Data: gzipped(m.Data)})
	}
	return append(files, under("usr/lib/systemd/system", units)...)
}

// overrides lists the accepted findings of lintian.
const overrides = `# Go's linker makes neither position-independent programs without cgo nor what hardening wants of C.
tilth: hardening-no-pie
tilth: hardening-no-relro
tilth: hardening-no-bindnow
# Files with several licences have Apache's in full among the others; all others refer to Debian's copy.
tilth: copyright-file-contains-full-apache-2-license
# The services are for systemd alone.
tilth: package-supports-alternative-init-but-no-init.d-script *
# Words of operators and of assembly, and tables without spaces.
tilth: spelling-error-in-binary *
tilth: spelling-error-in-copyright *
`

// copyrightLine matches a line of a licence that names a copyright owner.
var copyrightLine = regexp.MustCompile(`(?m)^\s*Copyright (\(c\) )?\d{4}.*$`)

// copyright returns the licence texts of the program and its modules. It refers to the Apache licence of Debian
// instead of repeating it.
func (s *source) copyright(modules []module) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Tilth %s, %s\n\n", s.version, home)
	out.WriteString("Copyright the Tilth authors. Tilth is under the Apache License, version 2.0: see\n" +
		"/usr/share/common-licenses/Apache-2.0. It contains these Go modules:\n")
	for _, m := range modules {
		fmt.Fprintf(&out, "\n%s\n%s %s: %s\n\n", strings.Repeat("-", 72), m.Path, m.Version, m.Licence)
		for _, t := range m.Texts {
			if id, err := identifyLicence(t.Data); err == nil && id == "Apache-2.0" {
				for _, line := range copyrightLine.FindAll(t.Data, -1) {
					fmt.Fprintf(&out, "%s\n", bytes.TrimSpace(line))
				}
				out.WriteString("See /usr/share/common-licenses/Apache-2.0.\n")
				continue
			}
			out.Write(bytes.TrimSpace(t.Data))
			out.WriteString("\n")
		}
	}
	return out.Bytes()
}

// debianChangelog returns the changes of the version in the format of deb-changelog(5).
func (s *source) debianChangelog(version string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "tilth (%s) stable; urgency=medium\n\n", version)
	for _, point := range changelogPoints(s.changes) {
		out.WriteString(wrapped("  * ", "    ", point))
	}
	fmt.Fprintf(&out, "\n -- %s  %s\n", maintainer, s.when.UTC().Format(time.RFC1123Z))
	return out.Bytes()
}

// wrapped breaks a text into lines of fewer than 80 columns. It indents the first line and the others as given.
func wrapped(first, others, text string) string {
	var out strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+len(word) >= 80 {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			line = others
		}
		line += word + " "
	}
	return out.String() + strings.TrimRight(line, " ") + "\n"
}
