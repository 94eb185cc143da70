package macros

import (
	"embed"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
)

//go:embed simulated/*.h
var files embed.FS

// simulated lists the headers of the simulator. Each uses those before it.
var simulated = []string{
	maps, "memory.h", "fibers.h", "block.h", "shared.h", "global.h", "copies.h", "bulk.h", "boxes.h", "warp.h", "fragments.h", "operands.h", "products.h",
	"words.h", "launch.h",
}

// Simulated returns the C text that simulates a GPU on a processor. It precedes kernels and follows the ABI header.
// Lines after it are numbered from 1, as in reports.
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
		panic(err) // unreachable: the files are embedded
	}
	return string(text)
}

// maps is the simulator's header for tensor maps.
const maps = "maps.h"

// SimulatedMaps returns the C text of struct sim_map, the simulator's tensor map, for code that encodes maps as a
// GPU's driver does.
func SimulatedMaps() string { return header(maps) }

// layout defines the layout of matrices in shared memory on each kind of device.
//
//go:embed layout.h
var layout string

//go:embed math.h
var functions string

// math holds the mathematical functions, whose expressions may be contracted, unlike those of kernels.
var math = cprint.Contract("ON") + functions + cprint.Contract("OFF")

// fromHere restarts the line numbers at 1.
const fromHere = "#line 1 \"kernels\"\n"

// Text is the dialect of printed kernels, with the mathematical functions of math.h.
var Text = cprint.Dialect{
	Head:     cprint.C.Head,
	Math:     func(name string, d array.DType) string { return "tilth_" + name + cprint.TypeOf(d).Builtin },
	Index:    "int",
	Half:     "HALF",
	BFloat16: "BF16",
	Float:    "FLOAT",
}
