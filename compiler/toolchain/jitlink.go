// Jitlink is a command that makes code for NVIDIA's cards of PTX, where there is no ptxas, by their library
// nvJitLink: the same assembler in another shape, which comes with CUDA 12.3 and later, and with PyTorch's packages.
// The library is opened by a process of its own, so that what goes wrong in it ends that process alone.

package toolchain

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

// JITLinkSource is the command's, in C: to be compiled for this machine and linked with -ldl. Its arguments are the
// library and --version, or the library, the assembler's flags, a file of PTX, -o and a file for the code.
//
//go:embed src/jitlink.c
var JITLinkSource string

// names are the library's, for each major version; the newest stands first.
var names = []string{"libnvJitLink.so.13", "libnvJitLink.so.12"}

// NamesJITLink reports whether a path is that of the library, not of a command.
func NamesJITLink(path string) bool { return strings.HasPrefix(filepath.Base(path), "libnvJitLink.so") }

// FindJITLink are the paths of the library, the newest major version first, where the loader is told to look, and
// where CUDA and distributions put it for an architecture of GNU's name, such as x86_64. Not all of them need work.
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
