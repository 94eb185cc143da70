package image

import (
	"embed"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

//go:embed src parts boxes card
var files embed.FS

// Sources are the reader of files of candidates, for a harness.
func Sources() []toolchain.File { return append(Files(files, "src"), Boxes()...) }

// Boxes are the header that says how boxes of a tensor are copied, which drivers make tensor maps of.
func Boxes() []toolchain.File { return Files(files, "boxes") }

// Card is the header of kernels that somebody wrote for a card.
func Card() []toolchain.File { return Files(files, "card") }

// Parts are the header that says how a package has code for a device, which launch.h includes.
func Parts() []toolchain.File { return Files(files, "parts") }

// Files are the texts of an embedded folder.
func Files(from embed.FS, folder string) (list []toolchain.File) {
	entries, err := from.ReadDir(folder)
	if err != nil {
		panic(err) // embedded
	}
	for _, entry := range entries {
		text, err := from.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			panic(err) // embedded
		}
		list = append(list, toolchain.File{Name: entry.Name(), Text: string(text)})
	}
	return list
}
