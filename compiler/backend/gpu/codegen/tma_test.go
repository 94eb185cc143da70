package codegen_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/codegen"
	"github.com/tilth-dev/tilth/compiler/backend/gpusim"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestInvalidTMACopiesAreRefused checks that they are refused before compilation: on GPUs without tensor maps, and for
// tensors that the launch itself writes.
func TestInvalidTMACopiesAreRefused(t *testing.T) {
	on, err := gpusim.Backend{}.Target(gpusim.Backend{}.Targets()[0].Name, 1)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Replace(kerneltest.WarpgroupBoxes, "tensorize 1 18 7\n", "", 1)
	for _, c := range []struct{ arch, workload, trace, want string }{
		{"sm_90a", kerneltest.WarpgroupProduct, plain, ""},
		{"sm_89", kerneltest.WarpgroupProduct, plain, "gpu: TMA copies require sm_90a, and this is simulated (sm_89)"},
		{"sm_90a", kerneltest.WarpgroupAfterMap, kerneltest.WarpgroupBoxesAfterMap(), ""},
		{"sm_90a", strings.ReplaceAll(kerneltest.WarpgroupAfterMap, "128,", "64,"), kerneltest.WarpgroupBoxesAfterMap(), "gpu: TMA copy of s0 in the launch that writes it"},
	} {
		s, err := schedule.Replay(parsed(t, c.workload), []byte("tilth-trace 1\n"+c.trace))
		if err != nil {
			t.Fatal(err)
		}
		gpu := *on.GPU
		gpu.Arch = c.arch
		if _, err := codegen.Lower(s, &gpu); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", c.arch, err, c.want)
		}
	}
}
