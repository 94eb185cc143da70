package target

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// board is the machine of a board with cores of several parts, by number, and its capacities, where there are any.
func board(parts []string, capacities []int) *machine {
	contents := map[string]string{}
	var info strings.Builder
	for k, part := range parts {
		fmt.Fprintf(&info, "processor\t: %d\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: %s\nCPU revision\t: 4\n\n", k, part)
		dir := fmt.Sprintf("%s/cpu%d/", cpuDir, k)
		contents[dir+"topology/thread_siblings_list"] = fmt.Sprintf("%d\n", k)
		size := "32K\n"
		if part == "0xd0b" {
			size = "64K\n"
		}
		contents[dir+"cache/index0/size"], contents[dir+"cache/index0/type"], contents[dir+"cache/index0/level"] = size, "Data\n", "1\n"
		if capacities != nil {
			contents[dir+"cpu_capacity"] = fmt.Sprintf("%d\n", capacities[k])
		}
	}
	info.WriteString("Hardware\t: a board\nRevision\t: 0001\n")
	contents["proc/cpuinfo"] = info.String()
	return &machine{root: files(contents), goarch: "arm64", logical: len(parts)}
}

const a55, a76 = "0xd05", "0xd0b"

// rock returns a board of four small cores and four large ones.
func rock() *machine {
	return board([]string{a55, a55, a55, a55, a76, a76, a76, a76}, []int{414, 414, 414, 414, 1024, 1024, 1024, 1024})
}

func describe(t *testing.T, m *machine) string {
	t.Helper()
	classes, err := m.classes()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range classes {
		list = append(list, fmt.Sprintf("%s x%d L1 %dK %v", c.Target.Model(), c.Target.CPU.Cores, c.Target.CPU.L1DataBytes>>10, c.CPUs))
	}
	return strings.Join(list, "; ")
}

func TestClassesOfCores(t *testing.T) {
	confined := rock()
	confined.allowed = []int{0, 1, 2, 3, 4}
	small := rock()
	small.allowed = []int{2, 3}
	small.logical = 2
	quota := rock()
	quota.logical = 3
	twins := board([]string{a55, a55, a55, a55}, []int{1024, 1024, 500, 500})
	for _, c := range []struct {
		name    string
		machine *machine
		want    string
	}{
		{"big.LITTLE", rock(), "0x41 0xd0b r0x0p4 x4 L1 64K [4 5 6 7]; 0x41 0xd05 r0x0p4 x4 L1 32K [0 1 2 3]"},
		{"three kinds, unordered", board([]string{a76, a55, "0xd44"}, []int{800, 300, 1024}),
			"0x41 0xd44 r0x0p4 x1 L1 32K [2]; 0x41 0xd0b r0x0p4 x1 L1 64K [0]; 0x41 0xd05 r0x0p4 x1 L1 32K [1]"},
		{"equal cores", board([]string{a76, a76}, nil), "0x41 0xd0b r0x0p4 x2 L1 64K []"},
		{"one model, two clocks", twins, "0x41 0xd05 r0x0p4 x2 L1 32K [0 1]; 0x41 0xd05 r0x0p4 capacity 500 x2 L1 32K [2 3]"},
		{"a process that may run on some", confined, "0x41 0xd0b r0x0p4 x1 L1 64K [4]; 0x41 0xd05 r0x0p4 x4 L1 32K [0 1 2 3]"},
		{"a process that may run on small ones alone", small, "0x41 0xd05 r0x0p4 x2 L1 32K []"},
		{"a container's quota", quota, "0x41 0xd0b r0x0p4 x3 L1 64K [4 5 6 7]; 0x41 0xd05 r0x0p4 x3 L1 32K [0 1 2 3]"},
	} {
		if got := describe(t, c.machine); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestHybridProcessors: Linux gives the cores of hybrid x86 processors one name, and lists the small ones.
func TestHybridProcessors(t *testing.T) {
	contents := map[string]string{"sys/devices/cpu_atom/cpus": "4-7\n"}
	var info strings.Builder
	for k := range 8 {
		fmt.Fprintf(&info, "processor\t: %d\nmodel name\t: Some CPU\ncpu family\t: 6\nmodel\t: 154\nstepping\t: 3\nflags\t: avx2 fma\n\n", k)
		siblings := fmt.Sprintf("%d-%d\n", k&^1, k|1) // large cores have two threads each
		if k >= 4 {
			siblings = fmt.Sprintf("%d\n", k)
		}
		dir := fmt.Sprintf("%s/cpu%d/", cpuDir, k)
		contents[dir+"topology/thread_siblings_list"] = siblings
		contents[dir+"cpufreq/cpuinfo_max_freq"] = fmt.Sprintf("%d\n", 4_700_000-k) // favoured cores are a little faster
	}
	contents["proc/cpuinfo"] = info.String()
	m := &machine{root: files(contents), goarch: "amd64", logical: 8}
	if got, want := describe(t, m), "Some 6.154.3 x2 L1 32K [0 1 2 3]; Some 6.154.3 capacity 0 x4 L1 32K [4 5 6 7]"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestClassIsChosen(t *testing.T) {
	for _, c := range []struct {
		class   string
		threads int
		want    string
	}{
		{"0", 0, "0x41 0xd0b r0x0p4, 4 threads"}, {"1", 0, "0x41 0xd05 r0x0p4, 4 threads"}, {"0xd05", 3, "0x41 0xd05 r0x0p4, 3 threads"},
		{"2", 0, `no class of cores "2"; it has 0 (0x41 0xd0b r0x0p4), 1 (0x41 0xd05 r0x0p4)`}, {"-1", 0, "no class"}, {"little", 0, "no class"},
		{"1", 5, "the class of cores 1 has 4 processors"},
	} {
		got, err := rock().choose(c.class, c.threads)
		text := fmt.Sprint(err)
		if err == nil {
			text = fmt.Sprintf("%s, %d threads", got.Model(), got.Threads())
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s with %d threads: %s, want %s", c.class, c.threads, text, c.want)
		}
	}
}

func TestAffinityIsThatOfTheTargetsClass(t *testing.T) {
	m := rock()
	classes, err := m.classes()
	if err != nil {
		t.Fatal(err)
	}
	of := func(k, threads int) *Target { return classes[k].Target.WithThreads(threads) }
	preset, err := Parse("arm64", 2)
	if err != nil {
		t.Fatal(err)
	}
	large, small := []int{4, 5, 6, 7}, []int{0, 1, 2, 3}
	for _, c := range []struct {
		name   string
		target *Target
		want   []int
	}{
		{"large", of(0, 4), large}, {"one of the large", of(0, 1), large}, {"small", of(1, 2), small},
		{"more threads than large cores", of(0, 6), nil}, {"no class of the machine", preset, large},
	} {
		if got := Affinity(classes, c.target); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	equal, err := board([]string{a55, a55}, nil).classes()
	if got := Affinity(equal, preset); got != nil || err != nil {
		t.Errorf("a machine with equal cores: %v, %v", got, err)
	}
	if got := Affinity(nil, preset); got != nil {
		t.Errorf("a machine that does not tell: %v", got)
	}
}

// TestEqualMachinesAreDescribedAsBefore: reading core classes does not change the target of a machine with one
// class.
func TestEqualMachinesAreDescribedAsBefore(t *testing.T) {
	if _, err := fs.Stat(here().root, "proc/cpuinfo"); err != nil {
		t.Skip("this system has no /proc")
	}
	classes, err := Classes()
	if err != nil {
		t.Fatal(err)
	}
	native, err := Native(0)
	if err != nil {
		t.Fatal(err)
	}
	if string(classes[0].Target.Encode()) != string(native.Encode()) {
		t.Errorf("the first class is %s, the machine %s", classes[0].Target.Encode(), native.Encode())
	}
}
