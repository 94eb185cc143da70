package toolchain

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

// JITLinkSource is the C source of a command that assembles PTX with NVIDIA's library nvJitLink where there is no
// ptxas. The library contains the same assembler, and comes with CUDA 12.3 and later and with PyTorch's packages. A
// separate process loads it, so that a crash affects that process alone. Compile the source for this machine and
// link it with -ldl. Its arguments are the library and --version, or the library, the assembler's flags, a PTX
// file, -o and an output file.
//
//go:embed src/jitlink.c
var JITLinkSource string

// names lists the library's names by major version, newest first.
var names = []string{"libnvJitLink.so.13", "libnvJitLink.so.12"}

// NamesJITLink reports whether a path is that of the library rather than a command.
func NamesJITLink(path string) bool { return strings.HasPrefix(filepath.Base(path), "libnvJitLink.so") }

// FindJITLink returns candidate paths of the library, newest major version first: in the loader's search path, and
// in the directories of CUDA and distributions for a GNU architecture such as x86_64. Some of them may not work.
func FindJITLink(arch string) (paths []string) {
	dirs := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), "/usr/local/cuda/lib64", "/usr/lib64", "/usr/lib/"+arch+"-linux-gnu")
	for _, name := range names {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
