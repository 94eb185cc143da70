package target

import (
	"slices"
	"strings"
	"testing"
)

// TestVectorsOfSVE: the length of registers is a process's own, and no feature of those that the kernel lists.
func TestVectorsOfSVE(t *testing.T) {
	root := files(map[string]string{"proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd asimdhp\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"})
	const hwcap = 1<<1 | 1<<10 | 1<<20 | 1<<22
	for _, c := range []struct {
		hwcap              uint64
		bytes, vectorBytes int
		flags              string
	}{
		{hwcap, 16, 16, "-march=armv8-a+bf16+dotprod+fp16+sve"},
		{hwcap, 32, 32, "-march=armv8-a+bf16+dotprod+fp16+sve -msve-vector-bits=256"},
		{hwcap, 64, 64, "-march=armv8-a+bf16+dotprod+fp16+sve -msve-vector-bits=512"},
		{hwcap, 48, 16, "-march=armv8-a+bf16+dotprod+fp16+sve"},
		{hwcap &^ (1 << 22), 32, 16, "-march=armv8-a+bf16+dotprod+fp16"},
	} {
		asked := false
		listed := hwcapFlags(c.hwcap, 1<<14, func() int { asked = true; return c.bytes })
		if has := c.hwcap>>22&1 != 0; asked != has {
			t.Errorf("SVE %v, its length asked for %v", has, asked)
		}
		got, err := (&machine{root: root, goarch: "arm64", logical: 8, unlisted: listed}).native(1)
		if err != nil {
			t.Fatal(err)
		}
		if flags := strings.Join(got.CPU.GCCFlags(), " "); flags != c.flags || got.CPU.VectorBytes != c.vectorBytes || got.CPU.VectorRegisters != 32 {
			t.Errorf("registers of %d bytes: vectors of %d, %s", c.bytes, got.CPU.VectorBytes, flags)
		}
	}
}

func TestSVEHasOneLength(t *testing.T) {
	for want, features := range map[string][]string{
		"SVE registers have one length":                 {"neon", "sve", "sve256", "sve512"},
		"256 bits of SVE registers, but no feature sve": {"neon", "sve256"},
	} {
		on, err := Parse("arm64", 1)
		if err != nil {
			t.Fatal(err)
		}
		on.CPU.Features = features
		if _, err := Decode(on.Encode()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", features, err)
		}
	}
}

// TestCodeForSVERunsWithItsLengthAlone: longer registers do not match, either, and Neon is always available.
func TestCodeForSVERunsWithItsLengthAlone(t *testing.T) {
	parse := func(name string, without ...string) *Target {
		on, err := Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		on.CPU.Features = slices.DeleteFunc(on.CPU.Features, func(f string) bool { return slices.Contains(without, f) })
		return on
	}
	v1 := parse("neoverse-v1")
	for _, c := range []struct {
		code, machine *Target
		want          string
	}{
		{v1, v1, ""},
		{parse("arm64"), v1, ""},
		{parse("neoverse-v1", "sve256"), v1, ""},
		{parse("neoverse-v1", "bf16", "dotprod", "i8mm"), parse("a64fx"), "needs SVE registers of 256 bits"},
		{parse("a64fx"), v1, "needs SVE registers of 512 bits"},
		{v1, parse("neoverse-v1", "sve256"), "needs SVE registers of 256 bits"},
		{v1, parse("neoverse-v1", "sve", "sve256"), "needs sve, which"},
	} {
		if err := c.code.RunsOn(c.machine); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v on %v: %v", c.code.CPU.Features, c.machine.CPU.Features, err)
		}
	}
}
