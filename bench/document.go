package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/internal/atomicfile"
)

// Marks of the part of a document that is written by this program.
const (
	beginMark = "<!-- begin: bench table -->\n"
	endMark   = "<!-- end: bench table -->\n"
)

// splice replaces what stands between the marks of a file.
func splice(path, part string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), beginMark)
	_, after, closed := strings.Cut(rest, endMark)
	if !ok || !closed {
		return fmt.Errorf("%s: it has no part between the lines %q and %q", path, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, before+beginMark+part+"\n"+endMark+after)
		return err
	})
}
