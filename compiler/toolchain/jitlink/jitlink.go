package jitlink

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is the command's, in C: to be compiled for this machine and linked with -ldl. Its arguments are the library
// and --version, or the library, the assembler's flags, a file of PTX, -o and a file for the code.
//
//go:embed src/jitlink.c
var Source string

// names are the library's, for each major version; the newest stands first.
var names = []string{"libnvJitLink.so.13", "libnvJitLink.so.12"}

// Names reports whether a path is that of the library, not of a command.
func Names(path string) bool { return strings.HasPrefix(filepath.Base(path), "libnvJitLink.so") }

// Find is the path of the library, of the newest major version; empty when there is none where CUDA and distributions
// put it, or where the loader is told to look.
func Find() string {
	dirs := slices.Concat(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), []string{"/usr/local/cuda/lib64", "/usr/lib64"}, ofDebian())
	for _, name := range names {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

// ofDebian are the folders of Debian's libraries, one for each kind of machine.
func ofDebian() []string {
	dirs, err := filepath.Glob("/usr/lib/*-linux-gnu")
	if err != nil {
		return nil // the pattern is right
	}
	return dirs
}
