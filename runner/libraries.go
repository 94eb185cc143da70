package runner

import (
	"debug/elf"
	"slices"
	"strings"
)

// librariesRemedy ends the message for an object that needs libraries and cannot be loaded. Candidates are
// blamed for libraries that the device lacks.
const librariesRemedy = " (the kernel calls a library of this device: install that version there, or tune without the kernel)"

// ordinary lists the C and compiler libraries, which every device has.
var ordinary = []string{"libc.", "libm.", "libdl.", "libpthread.", "libgcc_s.", "ld-linux"}

// callsLibraries reports whether an object needs libraries other than those of C.
func callsLibraries(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(ordinary, func(o string) bool { return strings.HasPrefix(name, o) })
	})
}
