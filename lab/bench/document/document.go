package document

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tilth-dev/tilth/internal/atomicfile"
)

// begin and end are the lines around the part of a document that a program writes.
func begin(part string) string { return "<!-- begin: " + part + " -->\n" }

// end is the line after a part.
func end(part string) string { return "<!-- end: " + part + " -->\n" }

// Splice replaces what stands between the lines begin(part) and end(part) of a file. It fails when the file has no
// such part.
func Splice(path, part, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), begin(part))
	_, after, closed := strings.Cut(rest, end(part))
	if !ok || !closed {
		return fmt.Errorf("%s: it has no part between the lines %q and %q", path, strings.TrimSpace(begin(part)), strings.TrimSpace(end(part)))
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, before+begin(part)+text+"\n"+end(part)+after)
		return err
	})
}
