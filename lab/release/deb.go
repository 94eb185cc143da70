package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// debianPackage describes a Debian package (deb(5)).
type debianPackage struct {
	// fields lists the fields of the control file in order, without Installed-Size.
	fields [][2]string
	// scripts maps names such as postinst to maintainer scripts.
	scripts map[string]string
	files   []file
}

// write returns the package: an ar archive of the format version, the control files and the installed files.
func (p debianPackage) write(when time.Time) ([]byte, error) {
	control, err := p.control()
	if err != nil {
		return nil, err
	}
	controlTar, err := tarGz("./", control, when)
	if err != nil {
		return nil, err
	}
	dataTar, err := tarGz("./", p.files, when)
	if err != nil {
		return nil, err
	}
	packed := bytes.NewBufferString("!<arch>\n")
	for _, member := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controlTar}, {"data.tar.gz", dataTar}} {
		fmt.Fprintf(packed, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, when.Unix(), 0, 0, "100644", len(member.data))
		packed.Write(member.data)
		if len(member.data)%2 == 1 {
			packed.WriteByte('\n') // members start at even offsets
		}
	}
	return packed.Bytes(), nil
}

// control returns the control files: control, md5sums and the maintainer scripts.
func (p debianPackage) control() ([]file, error) {
	tree, err := withFolders(p.files)
	if err != nil {
		return nil, err
	}
	var sums strings.Builder
	kibibytes := 0
	for _, f := range tree {
		kibibytes += max(1, (len(f.Data)+1023)/1024)
		if !f.Folder {
			fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.Data), f.Name)
		}
	}
	files := []file{
		{Name: "control", Mode: 0o644, Data: []byte(p.controlText(kibibytes))},
		{Name: "md5sums", Mode: 0o644, Data: []byte(sums.String())},
	}
	for name, text := range p.scripts {
		files = append(files, file{Name: name, Mode: 0o755, Data: []byte(text)})
	}
	return files, nil
}

// controlText returns the file control. Like dpkg, it has Installed-Size after Maintainer.
func (p debianPackage) controlText(kibibytes int) string {
	var text strings.Builder
	for _, f := range p.fields {
		fmt.Fprintf(&text, "%s: %s\n", f[0], f[1])
		if f[0] == "Maintainer" {
			fmt.Fprintf(&text, "Installed-Size: %d\n", kibibytes)
		}
	}
	return text.String()
}

var (
	taggedCommit   = regexp.MustCompile(`^v(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.]+?))?(?:-(\d+)-g([0-9a-f]+))?$`)
	untaggedCommit = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
)

// debianVersion converts the output of 'git describe --tags --always' to a version that Debian orders correctly.
// v1.2.0 becomes 1.2.0, v1.2.0-rc.1 becomes the earlier 1.2.0~rc.1, and the third commit after v1.2.0 becomes
// 1.2.0+3.gabcdef0. Commits without an earlier tag precede all releases, in order of time.
func debianVersion(described string, when time.Time) (string, error) {
	described = strings.TrimSuffix(described, "-dirty")
	if m := taggedCommit.FindStringSubmatch(described); m != nil {
		version := m[1]
		if m[2] != "" {
			version += "~" + m[2]
		}
		if m[3] != "" {
			version += "+" + m[3] + ".g" + m[4]
		}
		return version, nil
	}
	if untaggedCommit.MatchString(described) {
		return fmt.Sprintf("0~%s.g%s", when.UTC().Format("20060102150405"), described), nil
	}
	return "", fmt.Errorf("%q is not a version: want a tag such as v1.2.0, or the output of 'git describe --tags --always'", described)
}
