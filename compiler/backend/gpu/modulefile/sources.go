package modulefile

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src devicecode tensormap card
var files embed.FS

// Sources returns the reader of candidate files, for a harness.
func Sources() []toolchain.File { return append(Files(files, "src"), Maps()...) }

// Maps returns the header that describes TMA copies of a tensor, from which drivers encode tensor maps.
func Maps() []toolchain.File { return Files(files, "tensormap") }

// Card returns the header for user-written GPU kernels.
func Card() []toolchain.File { return Files(files, "card") }

// DeviceCode returns the header that defines how a package embeds device code. launch.h includes it.
func DeviceCode() []toolchain.File { return Files(files, "devicecode") }

// Files returns the files of an embedded folder.
func Files(from embed.FS, folder string) (list []toolchain.File) {
	entries, err := from.ReadDir(folder)
	if err != nil {
		panic(err) // unreachable: the files are embedded
	}
	for _, entry := range entries {
		text, err := from.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			panic(err) // unreachable: the files are embedded
		}
		list = append(list, toolchain.File{Name: entry.Name(), Text: string(text)})
	}
	return list
}
