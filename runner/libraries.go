package runner

import (
	"debug/elf"
	"slices"
	"strings"
)

// librariesRemedy ends the message of an object that calls libraries and that cannot be loaded: the candidates alone
// are to blame for what a device lacks that they need.
const librariesRemedy = " (the kernel calls a library of this device: install that version there, or tune without the kernel)"

// ordinary are the libraries of C and of compilers, which every device has.
var ordinary = []string{"libc.", "libm.", "libdl.", "libpthread.", "libgcc_s.", "ld-linux"}

// callsLibraries reports whether an object needs libraries beside those of C.
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
