package macros

import (
	"embed"
	_ "embed"
	"regexp"
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
	b.WriteString(collectives())
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

//go:embed opencl.h
var opencl string

var (
	// kernelHead matches the head of a kernel up to the end of its parameters.
	kernelHead = regexp.MustCompile(`(?m)^TILTH_KERNEL\(\w+, \d+\)\(.*\) \{$`)
	// parameter matches one of the parameters.
	parameter = regexp.MustCompile(`(GLOBAL (?:const )?\w+ \*restrict )(\w+)`)
)

// OpenCL translates kernels to OpenCL C 1.2, which drivers compile. OpenCL cannot pass a pointer into an allocation,
// so a kernel gets two arguments for each parameter: the memory, and the offset in bytes.
func OpenCL(kernels string) string {
	return opencl + math + fromHere + kernelHead.ReplaceAllStringFunc(kernels, func(head string) string {
		return parameter.ReplaceAllString(head, "${1}OPENCL_PARAMETER($2)")
	})
}

// openclFlags are clang's flags for such text.
var openclFlags = []string{"-x", "cl", "-cl-std=CL1.2", "-O1", "-c"}

// SPIRFlags returns clang's flags to check such text for a device with some OpenCL extensions. The output is
// discarded.
func SPIRFlags(extensions string) []string {
	flags := append([]string{"--target=spir64", "-emit-llvm"}, openclFlags...)
	if !strings.Contains(extensions, "cl_khr_fp64") {
		flags = append(flags, "-Xclang", "-cl-ext=-cl_khr_fp64")
	}
	return flags
}
