package deb

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/lab/dist/payload"
)

// Package describes a Debian package.
type Package struct {
	// Fields are the fields of the control file in order, without Installed-Size.
	Fields [][2]string
	// Scripts holds the maintainer scripts by name, such as postinst.
	Scripts map[string]string
	// Files have names without a leading slash.
	Files []payload.File
}

// Write writes a package. All of its files get the same time.
func (p Package) Write(w io.Writer, when time.Time) error {
	control, err := p.control()
	if err != nil {
		return err
	}
	controlTar, err := payload.TarGz("./", control, when)
	if err != nil {
		return err
	}
	dataTar, err := payload.TarGz("./", p.Files, when)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, member := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controlTar}, {"data.tar.gz", dataTar}} {
		if err := writeMember(w, member.name, member.data, when); err != nil {
			return err
		}
	}
	return nil
}

// writeMember writes a member of an ar archive, aligned to even offsets.
func writeMember(w io.Writer, name string, data []byte, when time.Time) error {
	_, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, when.Unix(), 0, 0, "100644", len(data))
	if err != nil {
		return err
	}
	if len(data)%2 == 1 {
		data = append(bytes.Clone(data), '\n')
	}
	_, err = w.Write(data)
	return err
}

// control returns the files that describe the package.
func (p Package) control() ([]payload.File, error) {
	tree, err := payload.Tree(p.Files)
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
	files := []payload.File{
		{Name: "control", Mode: 0o644, Data: []byte(p.controlText(kibibytes))},
		{Name: "md5sums", Mode: 0o644, Data: []byte(sums.String())},
	}
	for name, text := range p.Scripts {
		files = append(files, payload.File{Name: name, Mode: 0o755, Data: []byte(text)})
	}
	return files, nil
}

// controlText returns the control file, with the size after the maintainer like dpkg.
func (p Package) controlText(kibibytes int) string {
	var text strings.Builder
	for _, f := range p.Fields {
		fmt.Fprintf(&text, "%s: %s\n", f[0], f[1])
		if f[0] == "Maintainer" {
			fmt.Fprintf(&text, "Installed-Size: %d\n", kibibytes)
		}
	}
	return text.String()
}
