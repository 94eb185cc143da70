package dialect

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

// nvptx are the words of all cards, and those of warpgroups, which only kernels for newer ones use.
var nvptx = nvptxWords + nvptxWarpgroup

// NVPTX is the C text that clang makes PTX of, for NVIDIA's GPUs: it stands before kernels, as Simulated does.
func NVPTX() string { return layout + nvptx + math + fromHere }

// NVPTXFlags are clang's flags for such text, for an architecture such as sm_80 or sm_90a. They ask for the oldest
// version of PTX that has its instructions.
func NVPTXFlags(arch string) []string {
	version := "+ptx72" // or the first that has the instruction set, where that is a later one
	if strings.HasPrefix(arch, "sm_9") && arch != "sm_90" {
		version = "+ptx84"
	}
	return []string{"--target=nvptx64-nvidia-cuda", "-nogpulib", "-march=" + arch, "--cuda-feature=" + version, "-std=gnu11", "-ffreestanding",
		"-fconvergent-functions", "-ffp-contract=fast", "-fno-math-errno", "-O1", "-S"}
}

// kernelRemark is what TILTH_KERNEL leaves in PTX.
var kernelRemark = regexp.MustCompile(`(?m)^// kernel (\w+) has (\d+) threads$`)

// BoundThreads puts into PTX how many threads the blocks of each kernel have, which C cannot say. Without it an
// assembler keeps registers free for blocks of 1024. That a multiprocessor need not have room for more than one block
// keeps it from leaving values in memory to make such room.
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
