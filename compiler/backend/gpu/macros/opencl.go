package macros

import (
	_ "embed"
	"regexp"
	"strings"
)

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
