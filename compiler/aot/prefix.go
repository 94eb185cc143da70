package aot

import (
	"archive/tar"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

var prefixes = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// systems lists names that a package's header and library must not have, since a compiler that searches the
// package's directory would use them in place of the system's.
var systems = []string{
	"tilth", "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math", "setjmp",
	"signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string",
	"tgmath", "threads", "time", "uchar", "wchar", "wctype", "fcntl", "sched", "unistd", "features", "memory", "strings",
	"c", "m", "dl", "rt", "pthread", "util", "gcc", "gcc_s", "atomic", "stdc++",
}

// CheckPrefix rejects prefixes that are not C names, and the interface's own. The empty prefix is valid.
func CheckPrefix(prefix string) error {
	switch {
	case prefix == "":
		return nil
	case !prefixes.MatchString(prefix):
		return fmt.Errorf("%q: want a letter, then at most 63 letters, digits and underscores", prefix)
	case slices.Contains(systems, prefix):
		return fmt.Errorf("%q is the name of one of the system's headers or libraries, or of the interface itself: choose another", prefix)
	}
	return nil
}

// PrefixOf derives a prefix from a model's name; it is empty if the name has too few usable characters.
func PrefixOf(model string) string {
	prefix := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, model)
	prefix = prefix[:min(len(prefix), 64)]
	if prefix == "" || CheckPrefix(prefix) != nil {
		return ""
	}
	return prefix
}

// soName returns the soname of a package; without a prefix it is empty, and programs refer to the path of linking.
func soName(prefix string) string {
	if prefix == "" {
		return ""
	}
	return "lib" + prefix + ".so"
}

// namedHeader declares the function with the package's own name.
func namedHeader(prefix string) string {
	return fmt.Sprintf(`/* The functions of the package that was compiled with --prefix %[1]s: see tilth.h. */
#ifndef TILTH_PACKAGE_%[1]s
#define TILTH_PACKAGE_%[1]s
#include "tilth.h"

#ifdef __cplusplus
extern "C" {
#endif

const struct tilth_api *%[1]s_api(void);

#ifdef __cplusplus
}
#endif
#endif
`, prefix)
}

// addNamed adds the headers and libraries that distinguish packages by prefix.
func (w *archiveWriter) addNamed(prefix string) error {
	if prefix == "" {
		return nil
	}
	if err := w.addBytes(prefix+".h", []byte(namedHeader(prefix))); err != nil {
		return err
	}
	link := &tar.Header{
		Typeflag: tar.TypeSymlink, Name: soName(prefix), Linkname: objectName, Mode: 0o777, ModTime: time.Unix(0, 0), Format: tar.FormatGNU,
	}
	if err := w.tar.WriteHeader(link); err != nil {
		return fmt.Errorf("member %s: %w", link.Name, err)
	}
	return nil
}
