package opencl

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
)

const (
	// name is the name of the backend, and of the target for a device of this machine.
	name = "opencl"
	// LibraryVariable is the environment variable with the path of OpenCL's library, if it is not in the system's
	// search path.
	LibraryVariable = "TILTH_OPENCL_LIBRARY"
	// DeviceVariable is the environment variable with the number of the device, for packages too; 0 is the first.
	DeviceVariable = "TILTH_DEVICE"
	// usualLibrary is the library's name.
	usualLibrary = "libOpenCL.so.1"
)

// Properties that OpenCL does not report but kernels depend on: the warp size, the maximum block size in sketches,
// and registers.
const (
	stepThreads     = 32
	maxThreads      = 1024
	unitThreads     = 2048
	threadRegisters = 255
	unitRegisters   = 64 << 10
)

// maxLocalBytes and maxCacheBytes bound the memory sizes that a device may report.
const (
	maxLocalBytes = 1 << 24
	maxCacheBytes = 1 << 30
)

// library returns the library that the environment names, or the default.
func library() string { return cmp.Or(os.Getenv(LibraryVariable), usualLibrary) }

// chosen returns the number of the device.
func chosen() (int, error) {
	text := os.Getenv(DeviceVariable)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%s is not the number of a device; the first is 0", DeviceVariable, text)
	}
	return n, nil
}

// describe queries the driver.
func describe(host *target.Target) (*target.GPU, error) {
	number, err := chosen()
	if err != nil {
		return nil, err
	}
	text, err := query(nil, host, "", "describe.c").AskOnce(strconv.Itoa(number))
	if err != nil {
		return nil, err
	}
	return described(text)
}

// described parses the program's output: platform, device, version of the driver, of the language, extensions; then
// the kind of device, compute units, threads per work-group, bytes of local memory and of the cache.
func described(text string) (*target.GPU, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	const texts, numbers = 5, 5
	if len(lines) != texts+numbers {
		return nil, fmt.Errorf("driver query returned %d fields, want %d", len(lines), texts+numbers)
	}
	var n [numbers]int64
	for k := range n {
		var err error
		if n[k], err = strconv.ParseInt(lines[texts+k], 10, 64); err != nil {
			return nil, fmt.Errorf("driver query returned %q, want a number", lines[texts+k])
		}
	}
	units, threads, local, cache := n[1], n[2], n[3], n[4]
	if threads < stepThreads {
		return nil, fmt.Errorf("its work-groups have at most %d work-items, and kernels need %d", threads, stepThreads)
	}
	extensions := strings.Fields(lines[4])
	slices.Sort(extensions)
	return &target.GPU{
		Arch: target.OpenCL, Model: strings.TrimSpace(lines[1]), Driver: strings.Join([]string{lines[0], lines[2], lines[3]}, ", "),
		Extensions:      strings.Join(slices.Compact(extensions), " "),
		Multiprocessors: int(units), WarpThreads: stepThreads, BlockThreads: int(min(threads, maxThreads)) / stepThreads * stepThreads,
		MultiprocessorThreads: unitThreads, ThreadRegisters: threadRegisters, MultiprocessorRegisters: unitRegisters,
		BlockSharedBytes: min(local, maxLocalBytes), MultiprocessorSharedBytes: min(local, maxLocalBytes), L2Bytes: max(1, min(cache, maxCacheBytes)),
	}, nil
}
