package dialect

import (
	"embed"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ctext"
)

//go:embed simulated/*.h
var files embed.FS

// simulated are the headers of the simulation, each of which uses those before it.
var simulated = []string{
	maps, "memory.h", "fibers.h", "block.h", "shared.h", "global.h", "copies.h", "bulk.h", "boxes.h", "warp.h", "fragments.h", "operands.h", "products.h",
	"words.h", "launch.h",
}

// Simulated is the C text that makes a processor play a GPU: it stands before kernels, behind the header of the ABI.
// Lines behind it are counted from 1, as in reports.
func Simulated() string {
	var b strings.Builder
	b.WriteString(layout)
	for _, name := range simulated {
		b.WriteString(header(name))
	}
	b.WriteString(math)
	b.WriteString(fromHere)
	return b.String()
}

func header(name string) string {
	text, err := files.ReadFile("simulated/" + name)
	if err != nil {
		panic(err) // they are part of the program
	}
	return string(text)
}

// maps is the header of the simulation that has tensor maps.
const maps = "maps.h"

// SimulatedMaps is the C text of struct sim_map, which the simulation has in place of a tensor map: for what makes
// maps of what it is told, as a card's driver does.
func SimulatedMaps() string { return header(maps) }

// layout is where matrices lie in shared memory, on each kind of device.
//
//go:embed layout.h
var layout string

//go:embed math.h
var math string

// fromHere has the lines behind it counted from 1.
const fromHere = "#line 1 \"kernels\"\n"

// Text is how kernels are printed, with the mathematical functions of math.h.
var Text = ctext.Dialect{
	Head:     ctext.C.Head,
	Math:     func(name string, d array.DType) string { return "tilth_" + name + ctext.TypeOf(d).Builtin },
	Index:    "int",
	Half:     "HALF",
	BFloat16: "BF16",
	Float:    "FLOAT",
}
