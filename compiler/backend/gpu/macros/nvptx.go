package macros

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed nvptx.h
var nvptxWords string

//go:embed nvptx_warpgroup.h
var nvptxWarpgroup string

// nvptx defines the macros for all NVIDIA GPUs, and those of warpgroups, which only kernels for newer ones use.
var nvptx = nvptxWords + nvptxWarpgroup

// NVPTX returns the C text that clang compiles to PTX for NVIDIA GPUs. It precedes kernels, like Simulated.
func NVPTX() string { return layout + nvptx + math + fromHere }

// NVPTXFlags returns clang's flags for such text and an architecture such as sm_80 or sm_90a. They select the oldest
// version of PTX that has its instructions.
func NVPTXFlags(arch string) []string {
	version := "+ptx72" // or the first version with the instruction set, if later
	if strings.HasPrefix(arch, "sm_9") && arch != "sm_90" {
		version = "+ptx84"
	}
	return []string{"--target=nvptx64-nvidia-cuda", "-nogpulib", "-march=" + arch, "--cuda-feature=" + version, "-std=gnu11", "-ffreestanding",
		"-fconvergent-functions", "-ffp-contract=off", "-fno-math-errno", "-O1", "-S"}
}

// kernelRemark matches the comment that TILTH_KERNEL leaves in PTX.
var kernelRemark = regexp.MustCompile(`(?m)^// kernel (\w+) has (\d+) threads$`)

// BoundThreads adds the number of threads per block of each kernel to PTX, which C cannot express. Without it, the
// assembler reserves registers for blocks of 1024 threads. It also sets the minimum of one block per multiprocessor,
// which keeps the assembler from spilling to fit more.
func BoundThreads(ptx string) (string, error) {
	for _, k := range kernelRemark.FindAllStringSubmatch(ptx, -1) {
		name, threads := k[1], k[2]
		entry := strings.Index(ptx, ".entry "+name+"(")
		if entry < 0 {
			return "", fmt.Errorf("bounding the threads of kernel %s: its PTX has no such entry", name)
		}
		body := strings.Index(ptx[entry:], "\n{")
		if body < 0 {
			return "", fmt.Errorf("bounding the threads of kernel %s: its entry in the PTX has no body", name)
		}
		ptx = ptx[:entry+body] + "\n.maxntid " + threads + ", 1, 1\n.minnctapersm 1" + ptx[entry+body:]
	}
	return ptx, nil
}
