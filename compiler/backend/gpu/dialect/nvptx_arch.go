package dialect

import (
	"fmt"
	"regexp"
	"strings"
)

// chips are those that clang 19 makes code for and that have all instructions of kernels, such as cp.async.
var chips = []int{80, 86, 87, 89, 90}

// chipOf is the number of an instruction set of NVIDIA's: 90 of sm_90a.
var chipOf = regexp.MustCompile(`^sm_([0-9]{2,4})[a-z]?$`)

// CheckNVPTX says why no kernels can be made for an instruction set, such as sm_75, if so.
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

// NVPTXArch is the instruction set that kernels are compiled for, for a card of one that CheckNVPTX takes. Code that
// is not for one chip alone runs on later ones, too. So kernels for sm_90a are for sm_90 where they use no words of
// warpgroups, and those for chips that clang does not know are for the latest one before them that it knows.
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

// warpgroupWords finds the words that nvptx_warpgroup.h has, which end where any other begins.
var warpgroupWords = regexp.MustCompile(`\b(` + strings.Join(wordsOf(nvptxWarpgroup), "|") + `)\b`)

// wordsOf are the macros of a text, without those that are its own affair.
func wordsOf(text string) (list []string) {
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "NVPTX_") {
			list = append(list, m[1])
		}
	}
	return list
}
