package target

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const xeon = `processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Processor
stepping	: 8
flags		: fpu pni ssse3 sse4_1 sse4_2 avx fma avx2 bmi1 avx512f avx512vl avx512_vnni

processor	: 1
model name	: another
`

const cortex = `processor	: 0
Features	: fp asimd atomics asimdhp asimddp
CPU implementer	: 0x41
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1
`

func files(contents map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range contents {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestNativeReadsTheMachine(t *testing.T) {
	cache := cpuDir + "/cpu0/cache/"
	root := files(map[string]string{
		"proc/cpuinfo": xeon,
		cpuDir + "/cpu0/topology/thread_siblings_list": "0,2\n", cpuDir + "/cpu2/topology/thread_siblings_list": "0,2\n",
		cpuDir + "/cpu1/topology/thread_siblings_list": "1,3\n", cpuDir + "/cpu3/topology/thread_siblings_list": "1,3\n",
		cache + "index0/size": "48K\n", cache + "index0/type": "Data\n", cache + "index0/level": "1\n", cache + "index0/coherency_line_size": "64\n",
		cache + "index1/size": "32K\n", cache + "index1/type": "Instruction\n", cache + "index1/level": "1\n",
		cache + "index2/size": "2048K\n", cache + "index2/type": "Unified\n", cache + "index2/level": "2\n",
		cache + "index3/size": "105M\n", cache + "index3/type": "Unified\n", cache + "index3/level": "3\n",
	})
	got, err := (&machine{root: root, goarch: "amd64", logical: 4}).native(0)
	if err != nil {
		t.Fatal(err)
	}
	want := &Target{Backend: Default, CPU: &CPU{Arch: X86, Model: "Intel Xeon Processor 6.143.8", Cores: 2, Threads: 2, VectorBytes: 64, VectorRegisters: 32,
		Features:    []string{"avx", "avx2", "avx512f", "avx512vl", "avx512vnni", "bmi", "fma", "sse3", "sse4.1", "sse4.2", "ssse3"},
		L1DataBytes: 48 << 10, L2Bytes: 2 << 20, L3Bytes: 105 << 20, CacheLineBytes: 64}}
	if string(got.Encode()) != string(want.Encode()) {
		t.Errorf("got %s\nwant %s", got.Encode(), want.Encode())
	}
	if _, err := (&machine{root: root, goarch: "amd64", logical: 4}).native(5); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("5 threads on 4 processors: %v", err)
	}
}

func TestNativeOnArm(t *testing.T) {
	got, err := (&machine{root: files(map[string]string{"proc/cpuinfo": cortex}), goarch: "arm64", logical: 4}).native(3)
	if err != nil {
		t.Fatal(err)
	}
	if got.CPU.VectorBytes != 16 || got.CPU.VectorRegisters != 32 || got.CPU.Threads != 3 || got.CPU.Cores != 4 ||
		!slices.Equal(got.CPU.Features, []string{"dotprod", "fp16", "lse", "neon"}) {
		t.Errorf("got %s", got.Encode())
	}
	if flags := strings.Join(got.CPU.ClangFlags(), " "); flags != "--target=aarch64-linux-gnu -march=armv8-a+dotprod+fp16+lse" {
		t.Errorf("flags %s", flags)
	}
}

// TestVectorsOfRISCV: the letter v of a kernel's list may be a draft, so that only what a register says counts.
func TestVectorsOfRISCV(t *testing.T) {
	root := files(map[string]string{"proc/cpuinfo": "processor\t: 0\nisa\t\t: rv64imafdcv_zicsr_zba_zbb\nuarch\t: spacemit,x60\n"})
	for _, c := range []struct {
		registerBytes, vectorBytes int
		march                      string
	}{{0, 16, "-march=rv64gc_zba_zbb"}, {16, 16, "-march=rv64gcv_zba_zbb"}, {32, 32, "-march=rv64gcv_zba_zbb_zvl256b"}} {
		got, err := (&machine{root: root, goarch: "riscv64", logical: 8, unlisted: vectorFlags(c.registerBytes)}).native(1)
		if err != nil {
			t.Fatal(err)
		}
		if got.CPU.VectorBytes != c.vectorBytes || !slices.Contains(got.CPU.ClangFlags(), c.march) || got.Model() != "spacemit,x60" {
			t.Errorf("registers of %d bytes: vectors of %d, %v, model %s", c.registerBytes, got.CPU.VectorBytes, got.CPU.ClangFlags(), got.Model())
		}
	}
}

func TestNativeOnArm32(t *testing.T) {
	root := files(map[string]string{"proc/cpuinfo": "processor\t: 0\nFeatures\t: half thumb vfp neon vfpv3 vfpv4 idiva\nCPU implementer\t: 0x41\nCPU part\t: 0xc07\n"})
	got, err := (&machine{root: root, goarch: "arm", logical: 4}).native(1)
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Join(got.CPU.ClangFlags(), " ")
	if flags != "--target=arm-linux-gnueabihf -march=armv7-a -mfpu=neon-vfpv4 -mfloat-abi=hard" || got.CPU.VectorRegisters != 16 {
		t.Errorf("%s, %d registers", flags, got.CPU.VectorRegisters)
	}
}

func TestNativeHere(t *testing.T) {
	got, err := Native(1)
	if err != nil {
		t.Fatal(err)
	}
	if got.CPU.Threads != 1 || got.CPU.Cores < 1 {
		t.Errorf("got %s", got.Encode())
	}
	if slices.Contains(got.CPU.ClangFlags(), "-march=native") {
		t.Error("flags depend on the machine that compiles")
	}
}

func TestParse(t *testing.T) {
	v4, err := Parse("x86-64-v4", 2)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "board.json")
	if err := os.WriteFile(path, v4.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Read(path, 0)
	if err != nil || again.Fingerprint() != v4.Fingerprint() {
		t.Errorf("read back %v, %v", again, err)
	}
	if !slices.Contains(v4.CPU.ClangFlags(), "-mprefer-vector-width=512") || v4.CPU.VectorBytes != 64 {
		t.Errorf("x86-64-v4: %v", v4.CPU.ClangFlags())
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, _ := Parse("arm64", 1)
	edit := func(from, to string) string { return strings.Replace(string(good.Encode()), from, to, 1) }
	cases := map[string]struct{ name, want string }{
		"missing file":    {filepath.Join(dir, "none.json"), "reading the target's description"},
		"no JSON":         {write("a.json", "hello"), "not a target description"},
		"unknown field":   {write("b.json", edit(`"arch"`, `"archh"`)), "unknown field"},
		"unknown arch":    {write("c.json", edit(`"arm64"`, `"vax"`)), `architecture "vax" is not known`},
		"unknown feature": {write("d.json", edit(`"neon"`, `"avx2"`)), `arm64 has no feature "avx2"`},
		"zero threads":    {write("e.json", edit(`"threads": 1`, `"threads": 0`)), "0 threads"},
		"odd vectors":     {write("f.json", edit(`"vector_bytes": 16`, `"vector_bytes": 17`)), "vector_bytes 17"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(c.name, 0); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Read(write("good.json", string(good.Encode())), -1); err == nil {
		t.Error("negative threads were accepted")
	}
}

func TestParseRefuses(t *testing.T) {
	if _, err := Parse("pentium", 0); err == nil || !strings.Contains(err.Error(), `unknown target "pentium"`) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := Parse("arm64", -1); err == nil {
		t.Error("negative threads were accepted")
	}
}

func TestIdentity(t *testing.T) {
	a, _ := Parse("x86-64-v3", 2)
	b := a.WithToolchain("clang-19.1.7")
	c, _ := Parse("x86-64-v3", 4)
	if a.DeviceClass() != b.DeviceClass() {
		t.Error("the toolchain changes the device class")
	}
	if a.Fingerprint() == b.Fingerprint() {
		t.Error("the toolchain does not change the fingerprint")
	}
	if a.DeviceClass() == c.DeviceClass() {
		t.Error("threads do not change the device class")
	}
	if a.Processor() != c.Processor() {
		t.Error("threads change the name of the processor")
	}
	if !strings.HasPrefix(b.Fingerprint(), "generic-avx2-2t-clang-19.1.7-") {
		t.Errorf("fingerprint %s", b.Fingerprint())
	}
}

func TestProcessorsAreNamedByTheirEngines(t *testing.T) {
	for want, c := range map[string]CPU{
		"some-xeon-avx512-vnni-bf16-amx":     {Model: "Some Xeon", Arch: X86, Features: []string{"amx-tile", "avx2", "avx512bf16", "avx512f", "avx512vnni"}},
		"some-core-avx2-vnni":                {Model: "Some Core", Arch: X86, Features: []string{"avx2", "avxvnni"}},
		"0x41-0xd0c-r3p1-arm64-dotprod-i8mm": {Model: "0x41 0xd0c r3p1", Arch: ARM, Features: []string{"dotprod", "i8mm", "neon"}},
	} {
		if got := c.kind(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestRunsOn(t *testing.T) {
	parse := func(name string) *Target {
		p, err := Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := parse("x86-64-v3").RunsOn(parse("x86-64-v4")); err != nil {
		t.Errorf("an older instruction set: %v", err)
	}
	if err := parse("x86-64-v4").RunsOn(parse("x86-64-v3")); err == nil || !strings.Contains(err.Error(), "needs avx512") {
		t.Errorf("a newer instruction set: %v", err)
	}
	if err := parse("arm64").RunsOn(parse("x86-64-v3")); err == nil || !strings.Contains(err.Error(), "cannot run on this x86-64 machine") {
		t.Errorf("another architecture: %v", err)
	}
}

// TestVectorsThatWouldTrapAreNotTried: a kernel that lists vectors may not save their registers, or may deny them.
func TestVectorsThatWouldTrapAreNotTried(t *testing.T) {
	for name, c := range map[string]struct {
		probed  bool
		hwcap   uint64
		control int
		want    bool
	}{
		"the kernel knows none":               {false, 0x112d, vectorsUnsaid, false},
		"it hands them to programs":           {false, 0x112d | hwcapV, vectorsUnsaid, true},
		"riscv_hwprobe tells of them":         {true, 0, 2, true},
		"they are on":                         {true, hwcapV, 2, true},
		"they are denied to the process":      {true, hwcapV, vectorsOff, false},
		"on now, and denied to what it execs": {true, hwcapV, 2 | vectorsOff<<2, true},
	} {
		if got := vectorsUsable(c.probed, c.hwcap, c.control); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestBoardWithoutVectorsIsToldOfItsTarget(t *testing.T) {
	vectors, err := Parse("riscv64", 1)
	if err != nil {
		t.Fatal(err)
	}
	board, err := Parse("sifive-u74", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := vectors.RunsOn(board); err == nil || !strings.Contains(err.Error(), "use --target sifive-u74") {
		t.Errorf("got %v", err)
	}
}
