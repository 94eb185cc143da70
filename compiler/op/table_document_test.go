package op

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/operators.md")

// document returns the text of docs/operators.md.
func document() []byte {
	var b bytes.Buffer
	b.WriteString("# Operators\n\nThese ONNX operators are supported, within the limits that errors name:\n\n")
	writeNames(&b, supported(""))
	others := map[string]bool{}
	for n := range defs {
		others[n.domain] = true
	}
	delete(others, "")
	for _, domain := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(&b, "\nOf the domain `%s`:\n\n", domain)
		writeNames(&b, supported(domain))
	}
	b.WriteString("\nRefused:\n\n| operators | reason and remedy |\n|---|---|\n")
	byReason := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		byReason[refused[name]] = append(byReason[refused[name]], "`"+name+"`")
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(byReason[reason], ", "), reason)
	}
	return b.Bytes()
}

// writeNames writes a list, wrapped at 118 columns.
func writeNames(b *bytes.Buffer, names []string) {
	line := "`" + names[0] + "`"
	for _, name := range names[1:] {
		if len(line)+len(name)+5 > 118 {
			b.WriteString(line + ",\n")
			line = "`" + name + "`"
			continue
		}
		line += ", `" + name + "`"
	}
	b.WriteString(line + ".\n")
}

func TestDocumentationListsTheOperators(t *testing.T) {
	const path = "../../docs/operators.md"
	if *update {
		if err := os.WriteFile(path, document(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, document()) {
		t.Errorf("docs/operators.md does not list the table's operators: go test ./compiler/op -update (%v)", err)
	}
}

// supported lists the operators of a domain that models may use, in alphabetical order.
func supported(domain string) []string {
	var names []string
	for n, d := range defs {
		if n.domain == domain && !d.Internal {
			names = append(names, n.op)
		}
	}
	slices.Sort(names)
	return names
}
