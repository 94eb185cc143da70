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

// chips lists the chips that clang 19 supports and that have all instructions of kernels, such as cp.async.
var chips = []int{80, 86, 87, 89, 90}

// chipOf matches the number of an NVIDIA instruction set: 90 in sm_90a.
var chipOf = regexp.MustCompile(`^sm_([0-9]{2,4})[a-z]?$`)

// CheckNVPTX returns an error if kernels cannot be compiled for an instruction set, such as sm_75.
func CheckNVPTX(arch string) error {
	switch n, ok := chip(arch); {
	case !ok:
		return fmt.Errorf("%q is not an instruction set of NVIDIA's; use one such as sm_80", arch)
	case n < chips[0]:
		return fmt.Errorf("its instruction set %s is too old: kernels need sm_%d or newer", arch, chips[0])
	}
	return nil
}

func chip(arch string) (n int, ok bool) {
	m := chipOf.FindStringSubmatch(arch)
	if m == nil {
		return 0, false
	}
	_, err := fmt.Sscan(m[1], &n)
	return n, err == nil
}

// NVPTXArch returns the instruction set to compile kernels for, given that of a GPU that CheckNVPTX accepts. Code
// that is not architecture-specific also runs on later chips. Therefore kernels without warpgroup macros are compiled
// for sm_90 instead of sm_90a, and kernels for chips unknown to clang for the latest earlier chip that it knows.
func NVPTXArch(kernels, arch string) string {
	if arch == "sm_90a" && warpgroupWords.MatchString(kernels) {
		return arch
	}
	made := chips[0]
	n, _ := chip(arch)
	for _, c := range chips {
		if c <= n {
			made = c
		}
	}
	return fmt.Sprintf("sm_%d", made)
}

// warpgroupWords matches the macros of nvptx_warpgroup.h at word boundaries.
var warpgroupWords = regexp.MustCompile(`\b(` + strings.Join(wordsOf(nvptxWarpgroup), "|") + `)\b`)

// wordsOf returns the macros that a text defines, without its private ones.
func wordsOf(text string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "NVPTX_") {
			list = append(list, m[1])
		}
	}
	return list
}
