// Package document writes generated parts into documents.
package document

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/internal/atomicfile"
)

// Begin and End are the lines around the part of a document that a program writes.
func Begin(part string) string { return "<!-- begin: " + part + " -->\n" }

// End is the line after a part.
func End(part string) string { return "<!-- end: " + part + " -->\n" }

// Splice replaces what stands between the lines Begin(part) and End(part) of a file. It fails when the file has no such part.
func Splice(path, part, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), Begin(part))
	_, after, closed := strings.Cut(rest, End(part))
	if !ok || !closed {
		return fmt.Errorf("%s: it has no part between the lines %q and %q", path, strings.TrimSpace(Begin(part)), strings.TrimSpace(End(part)))
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, before+Begin(part)+text+"\n"+End(part)+after)
		return err
	})
}
