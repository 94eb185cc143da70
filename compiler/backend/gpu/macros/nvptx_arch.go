package macros

import (
	"fmt"
	"regexp"
	"strings"
)

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
		return fmt.Errorf("its instruction set is %s, and kernels are made for those from sm_%d on", arch, chips[0])
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
