package macros

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quickKernels lists the files that the quick tier runs in builds other than clang's: collectives of warps, and
// copies that a thread waits for.
var quickKernels = map[string][]string{"gcc": {"sums"}, "arm64": {"bulk"}}

func TestKernelsComputeTheSameAsPlainLoops(t *testing.T) {
	for _, b := range builds {
		for _, name := range kernelNames(t) {
			if testing.Short() && !slices.Contains(quickKernels[b.name], name) && b.name != clang.name {
				continue
			}
			t.Run(b.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, workers := range []int{1, 3} { // with the same program
					if out, err := b.run(t, read(t, "kernels", name+".c"), read(t, "hosts", name+".c"), workers); err != nil {
						t.Errorf("%d workers: %v: %s", workers, err, out)
					}
				}
			})
		}
	}
}

// waits lists the macros that wait. A correct kernel needs each of them.
var waits = []string{
	"BARRIER();", "WARP_BARRIER();", "COPY_WAIT(0);", "COPY_WAIT(1);", "COPY_COMMIT();", "FENCE_ASYNC();", "WGMMA_FENCE(d, 64);", "WGMMA_COMMIT();",
	"WGMMA_WAIT(1);", "WGMMA_WAIT_ALL(d, 64);",
	"MBARRIER_EXPECT(full, 0, 4096);", "MBARRIER_EXPECT(full, 0, 2048);", "MBARRIER_WAIT(full, 0, 0);", "MBARRIER_WAIT(full, 0, panel);",
	"MBARRIER_INVALIDATE(full, 0);", "MBARRIER_INIT(full, 0, 1);", "MBARRIER_EXPECT(full, row % 2, 512);", "MBARRIER_WAIT(full, (row - 1) % 2, (row - 1) / 2 % 2);",
}

// missing matches a report of the possible effects of a missing wait.
var missing = regexp.MustCompile(`^gpu-sim: kernel \w+, block \d+: .*(race on|nobody wrote|has not waited|it waited|have waited|has waited|no FENCE_ASYNC|is no mbarrier|, which is one|are missing|no WGMMA_FENCE)`)

// TestEveryWaitThatIsRemovedIsFound removes each waiting line from each correct kernel.
func TestEveryWaitThatIsRemovedIsFound(t *testing.T) {
	removed := 0
	for _, name := range kernelNames(t) {
		lines := strings.Split(read(t, "kernels", name+".c"), "\n")
		for k, line := range lines {
			word := strings.TrimSpace(line)
			if !slices.Contains(waits, word) {
				continue
			}
			if removed++; testing.Short() && removed%6 != 0 {
				continue
			}
			changed := slices.Clone(lines)
			changed[k] = ";"
			t.Run(fmt.Sprintf("%s line %d without %s", name, k+1, word), func(t *testing.T) {
				t.Parallel()
				out, err := clang.run(t, strings.Join(changed, "\n"), read(t, "hosts", name+".c"), 1)
				if err == nil || !missing.MatchString(out) {
					t.Errorf("it is not found: %v, %s", err, out)
				}
			})
		}
	}
	if removed < 37 {
		t.Errorf("%d lines wait", removed)
	}
}
