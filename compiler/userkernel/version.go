package userkernel

import (
	_ "embed"
	"fmt"
	"strings"
)

// versionCode is C that reads library versions.
//
//go:embed src/version.c
var versionCode string

// CheckName is the function of Check's text: it returns an error text if libraries do not match the kernels, or NULL.
const CheckName = "tilth_libraries"

// Check returns a translation unit that compares the versions of the libraries with those that the kernels require,
// and the libraries' sonames; none if no library is called. Attributes precede its function.
func Check(kernels []*Kernel, attributes string) (text string, sonames []string, err error) {
	list, err := mergeLibraries(kernels)
	if err != nil || len(list) == 0 {
		return "", nil, err
	}
	for _, l := range list {
		sonames = append(sonames, l.SOName)
	}
	return checkText(list, attributes), sonames, nil
}

func checkText(list []Library, attributes string) string {
	var b strings.Builder
	b.WriteString(versionCode)
	declare(&b, list)
	fmt.Fprintf(&b, "%s const char *%s(void) {\n  char found[VERSION_BYTES];\n", attributes, CheckName)
	for i, l := range list {
		fmt.Fprintf(&b, "  read%d(found);\n  if (differs(%q, %q, found)) return complaint;\n", i, l.SOName, l.Version)
	}
	b.WriteString("  return 0;\n}\n")
	return b.String()
}

// VersionProgram returns a program that prints the versions of libraries, one per line.
func VersionProgram(list []Library) string {
	var b strings.Builder
	b.WriteString(versionCode)
	declare(&b, list)
	b.WriteString("int main(void) {\n  char found[VERSION_BYTES];\n")
	for i := range list {
		fmt.Fprintf(&b, "  read%d(found);\n  puts(found);\n", i)
	}
	b.WriteString("  return 0;\n}\n")
	return b.String()
}

// declare adds a function for each library that reads its version.
func declare(b *strings.Builder, list []Library) {
	for i, l := range list {
		switch {
		case l.Properties > 0:
			fmt.Fprintf(b, "extern int %s(int, int *);\nstatic void read%d(char *found) { properties(found, %s, %d); }\n", l.Function, i, l.Function, l.Properties)
		case l.Numbers > 0:
			fmt.Fprintf(b, "extern const void *%s(void);\nstatic void read%d(char *found) { numbers(found, %s(), %d); }\n", l.Function, i, l.Function, l.Numbers)
		default:
			fmt.Fprintf(b, "extern const char *%s(void);\nstatic void read%d(char *found) { dotted(found, %s()); }\n", l.Function, i, l.Function)
		}
	}
}
