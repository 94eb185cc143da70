package dialect

import (
	"embed"
	"strings"

	"github.com/tilth-dev/tilth/compiler/ctext"
)

//go:embed simulated/*.h
var files embed.FS

// simulated are the headers of the simulation, each of which uses those before it.
var simulated = []string{
	"memory.h", "fibers.h", "block.h", "shared.h", "global.h", "copies.h", "warp.h", "fragments.h", "words.h", "launch.h",
}

// Simulated is the C text that makes a processor play a GPU: it stands before kernels, behind the header of the ABI.
// Lines behind it are counted from 1, as in reports.
func Simulated() string {
	var b strings.Builder
	for _, name := range simulated {
		text, err := files.ReadFile("simulated/" + name)
		if err != nil {
			panic(err) // they are part of the program
		}
		b.Write(text)
	}
	return b.String()
}

// Text is how kernels are printed for the simulation.
var Text = ctext.Dialect{Head: ctext.C.Head, Math: ctext.C.Math, Index: "int"}
