package macros

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// instructions lists the expected instructions in the PTX of each file of kernels and, if an assembler is available,
// in its machine code.
var instructions = map[string]struct{ ptx, sass []string }{
	"copy":      {[]string{"ld.global.nc.v4.f32", "st.global.v4.f32", ".maxntid 64, 1, 1"}, []string{"LDG.E.128", "STG.E.128"}},
	"sums":      {[]string{"shfl.sync.down.b32", "shfl.sync.bfly.b32", "bar.sync", "red.global.add.f32", "red.global.add.s32"}, []string{"SHFL.DOWN", "RED"}},
	"simt":      {[]string{"ld.shared.v4.f32", "fma.rn.f32", "bar.sync"}, []string{"LDS.128", "FFMA"}},
	"tensor":    {[]string{"cp.async.cg.shared.global", "ldmatrix.sync.aligned.m8n8.x4", "m16n8k16.row.col.f32.bf16"}, []string{"LDGSTS", "LDSM", "HMMA"}},
	"fragments": {[]string{"f32.f16.f16.f32", "f32.tf32.tf32.f32", "s32.s8.s8.s32", "s32.u8.u8.s32", "x2.trans", "bar.warp.sync"}, []string{"HMMA", "IMMA"}},
	"bulk": {[]string{
		"mbarrier.init.shared::cta.b64", "mbarrier.arrive.expect_tx.shared::cta.b64", "mbarrier.try_wait.parity.shared::cta.b64",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "fence.proxy.async.shared::cta",
	}, []string{"UBLKCP", "SYNCS"}},
	"boxes": {[]string{
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", "cp.async.bulk.tensor.3d", "cp.async.bulk.tensor.4d",
		"cp.async.bulk.tensor.5d", "mbarrier.inval.shared::cta.b64", "cvta.param.u64", "turned_param_2",
	}, []string{"UTMALDG.2D", "UTMALDG.3D", "UTMALDG.4D", "UTMALDG.5D", "SYNCS"}},
	"warpgroup": {[]string{
		"fence.proxy.async.shared::cta", "wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 1",
		"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "m64n64k16.f32.f16.f16", "m64n32k8.f32.tf32.tf32", "m64n32k32.s32.s8.s8",
		"m64n16k32.s32.u8.u8", "m64n16k32.s32.s8.u8", "m64n16k32.s32.u8.s8",
	}, []string{"HGMMA", "IGMMA"}},
}

// smallest is the oldest architecture with a file's instructions, if not all have them.
var smallest = map[string]string{"boxes": "sm_90a", "bulk": "sm_90a", "warpgroup": "sm_90a"}

// memoryOfThreads matches PTX whose thread variables are not in registers.
var memoryOfThreads = regexp.MustCompile(`\.local|__local_depot|call`)

// strict lists flags that make the compiler refuse all that it warns of, except for libraries without a linker.
var strict = []string{"-Wall", "-Werror", "-Wno-unused-command-line-argument"}

// ptxOf compiles a file of kernels to PTX.
func ptxOf(t *testing.T, name, arch string) string {
	t.Helper()
	object, err := toolchaintest.Program(t, "clang-19", append(NVPTXFlags(arch), strict...), NVPTX()+read(t, "kernels", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := BoundThreads(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

func TestKernelsCompileToPTXInRegistersAlone(t *testing.T) {
	requireNVPTX(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		for _, name := range kernelNames(t) {
			if arch < smallest[name] || testing.Short() && arch == "sm_80" && name != "tensor" {
				continue
			}
			t.Run(arch+"/"+name, func(t *testing.T) {
				t.Parallel()
				ptx := ptxOf(t, name, arch)
				for _, want := range instructions[name].ptx {
					if !strings.Contains(ptx, want) {
						t.Errorf("there is no %s in\n%s", want, ptx)
					}
				}
				if at := memoryOfThreads.FindString(ptx); at != "" {
					t.Errorf("there is %s in\n%s", at, ptx)
				}
			})
		}
	}
}

// requireNVPTX skips a test if no available clang supports PTX.
func requireNVPTX(t *testing.T) {
	t.Helper()
	targets, err := exec.CommandContext(t.Context(), "clang-19", "--print-targets").Output()
	if err != nil || !strings.Contains(string(targets), "nvptx64") {
		t.Skip("there is no clang-19 with the target nvptx64")
	}
}

// TestKernelsAssembleWithoutSpills requires NVIDIA's assembler, which is not in Debian's main section.
func TestKernelsAssembleWithoutSpills(t *testing.T) {
	requireNVPTX(t)
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("there is no ptxas")
	}
	for _, name := range kernelNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arch := max("sm_80", smallest[name])
			dir := t.TempDir()
			text, cubin := filepath.Join(dir, "k.ptx"), filepath.Join(dir, "k.cubin")
			if err := os.WriteFile(text, []byte(ptxOf(t, name, arch)), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), ptxas, "-v", "-arch="+arch, text, "-o", cubin).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, line := range strings.Split(string(out), "\n") {
				if strings.Contains(line, "spill") && !strings.Contains(line, "0 bytes spill stores, 0 bytes spill loads") {
					t.Error(line)
				}
			}
			sass, err := exec.CommandContext(t.Context(), "cuobjdump", "-sass", cubin).Output()
			if err != nil {
				t.Skip("there is no cuobjdump")
			}
			for _, want := range instructions[name].sass {
				if !strings.Contains(string(sass), want) {
					t.Errorf("there is no %s in\n%s", want, sass)
				}
			}
		})
	}
}

func TestBoundThreadsSaysWhichKernelHasNoEntry(t *testing.T) {
	if _, err := BoundThreads("// kernel k has 32 threads\n"); err == nil || err.Error() != "bounding the threads of kernel k: its PTX has no such entry" {
		t.Error(err)
	}
}
