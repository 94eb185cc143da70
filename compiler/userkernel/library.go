package userkernel

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Library is a shared library that a kernel's source calls. The machine's own linker and loader find it.
type Library struct {
	// SOName is its name for the dynamic linker, e.g. libopenblas.so.0.
	SOName string `json:"soname"`
	// Function returns its version. It has no parameters and returns a text, or, if Numbers is set, a pointer to
	// that many numbers.
	Function string `json:"version_function"`
	Numbers  int    `json:"version_numbers,omitempty"`
	// Properties is the number of version parts if the function takes the number of a part, from 0 on, and a
	// pointer for its value, and returns 0, like cublasGetProperty.
	Properties int `json:"version_properties,omitempty"`
	// Version is the library version, such as 0.3.21: the first dotted number in the function's text. A directory
	// may omit it; a kernel in a trace includes it.
	Version string `json:"version,omitempty"`
}

// Limits on libraries.
const (
	maxLibraries = 4
	// maxNumbers limits the parts of a numeric version.
	maxNumbers = 4
)

var (
	sonameOf   = regexp.MustCompile(`^lib[A-Za-z0-9][A-Za-z0-9_+-]{0,47}\.so(\.[0-9]{1,8}){0,3}$`)
	functionOf = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	versionOf  = regexp.MustCompile(`^[0-9]{1,8}(\.[0-9]{1,8}){1,5}$`)
)

// String returns the library with its version, if known.
func (l Library) String() string { return strings.TrimSpace(l.SOName + " " + l.Version) }

func (k *Kernel) checkLibraries() error {
	if len(k.Libraries) > maxLibraries {
		return fmt.Errorf("libraries: more than %d", maxLibraries)
	}
	for i, l := range k.Libraries {
		switch {
		case !sonameOf.MatchString(l.SOName):
			return fmt.Errorf("library %.60q: want the soname of a shared library, such as libopenblas.so.0", l.SOName)
		case slices.ContainsFunc(k.Libraries[:i], func(o Library) bool { return o.SOName == l.SOName }):
			return fmt.Errorf("duplicate library %s", l.SOName)
		case !functionOf.MatchString(l.Function):
			return fmt.Errorf("library %s: version_function %.60q: want the name of a function of the library that returns its version", l.SOName, l.Function)
		case l.Numbers < 0 || l.Numbers == 1 || l.Numbers > maxNumbers:
			return fmt.Errorf("library %s: version_numbers %d: want 2 to %d, or none where the function returns a text", l.SOName, l.Numbers, maxNumbers)
		case l.Properties < 0 || l.Properties == 1 || l.Properties > maxNumbers:
			return fmt.Errorf("library %s: version_properties %d: want 2 to %d, or none", l.SOName, l.Properties, maxNumbers)
		case l.Properties > 0 && l.Numbers > 0:
			return fmt.Errorf("library %s: its version has either version_numbers or version_properties", l.SOName)
		case l.Version != "" && !versionOf.MatchString(l.Version):
			return fmt.Errorf("library %s: version %.60q: want numbers with dots between them, such as 0.3.21", l.SOName, l.Version)
		}
	}
	return nil
}

// Pinned reports whether the versions of all libraries are known.
func (k *Kernel) Pinned() bool {
	return !slices.ContainsFunc(k.Libraries, func(l Library) bool { return l.Version == "" })
}

// Pin returns the kernel with the given versions of its libraries, in order. They must equal the versions that the
// kernel specifies.
func (k *Kernel) Pin(versions []string) (*Kernel, error) {
	pinned := *k
	pinned.Libraries = slices.Clone(k.Libraries)
	for i := range pinned.Libraries {
		l := &pinned.Libraries[i]
		if l.Version != "" && l.Version != versions[i] {
			return nil, fmt.Errorf("own kernel %s is for %s, and this machine has version %s: have %s name that one, or leave the version out, and tune again",
				k.Name, l, versions[i], DescriptionFile)
		}
		l.Version = versions[i]
	}
	if err := pinned.complete(); err != nil {
		return nil, fmt.Errorf("own kernel %s: %w", k.Name, err)
	}
	return &pinned, nil
}

// mergeLibraries returns the libraries of several kernels, each once. Kernels for different versions of a library
// cannot share a module.
func mergeLibraries(kernels []*Kernel) (list []Library, err error) {
	for _, k := range kernels {
		for _, l := range k.Libraries {
			at := slices.IndexFunc(list, func(o Library) bool { return o.SOName == l.SOName })
			switch {
			case at < 0:
				list = append(list, l)
			case list[at] != l:
				return nil, fmt.Errorf("own kernel %s is for %s, and another one for %s: tune both with the same", k.Name, l, list[at])
			}
		}
	}
	return list, nil
}

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
