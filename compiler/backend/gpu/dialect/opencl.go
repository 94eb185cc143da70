package dialect

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed opencl.h
var opencl string

var (
	// kernelHead is how a kernel begins, up to the end of its parameters.
	kernelHead = regexp.MustCompile(`(?m)^TILTH_KERNEL\(\w+, \d+\)\(.*\) \{$`)
	// parameter is one of them.
	parameter = regexp.MustCompile(`(GLOBAL (?:const )?\w+ \*restrict )(\w+)`)
)

// OpenCL is kernels as OpenCL C 1.2, which drivers compile. OpenCL names no place within memory that was allocated as
// one, so a kernel gets two arguments for each parameter: the memory, and the offset in bytes.
func OpenCL(kernels string) string {
	return opencl + math + fromHere + kernelHead.ReplaceAllStringFunc(kernels, func(head string) string {
		return parameter.ReplaceAllString(head, "${1}OPENCL_PARAMETER($2)")
	})
}

// openclFlags are clang's flags for such text.
var openclFlags = []string{"-x", "cl", "-cl-std=CL1.2", "-O1", "-c"}

// SPIRFlags are clang's flags to check such text for a device with some of OpenCL's extensions: what it makes is
// nobody's.
func SPIRFlags(extensions string) []string {
	flags := append([]string{"--target=spir64", "-emit-llvm"}, openclFlags...)
	if !strings.Contains(extensions, "cl_khr_fp64") {
		flags = append(flags, "-Xclang", "-cl-ext=-cl_khr_fp64")
	}
	return flags
}

// AMDFlags are clang's flags to make object code of such text for a GPU of AMD's, such as gfx90a.
func AMDFlags(arch string) []string {
	return append([]string{"--target=amdgcn-amd-amdhsa", "-nogpulib", "-mcpu=" + arch}, openclFlags...)
}
