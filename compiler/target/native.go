package target

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Native describes this machine; of cores of several classes, the fastest. Zero threads means one a physical core.
// More threads than the class has processors run on those of others, too.
func Native(threads int) (*Target, error) { return here().native(threads) }

// machine is where a process runs.
type machine struct {
	// root has /proc and /sys.
	root   fs.FS
	goarch string
	// logical is how many processors the process may keep busy, allowed which; nil = all of them.
	logical int
	allowed []int
	// unlisted is what processors have beyond what the kernel lists.
	unlisted []string
}

// here is this process's machine.
func here() *machine {
	return &machine{root: os.DirFS("/"), goarch: runtime.GOARCH, logical: Processors(), allowed: allowed(), unlisted: unlisted()}
}

// allowed are the processors that this process may run on; nil when that is not known.
func allowed() (list []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for number := range len(set) * 64 {
		if set.IsSet(number) {
			list = append(list, number)
		}
	}
	return list
}

// Processors is how many logical processors this process may keep busy: those it may run on, less what a container's
// quota denies it, or what GOMAXPROCS says.
func Processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// IsHost reports whether programs for the target run on this machine's architecture.
func (t *Target) IsHost() bool { return goArches[runtime.GOARCH] == t.CPU.Arch }

// goArches are the names of the architectures in Go.
var goArches = map[string]string{"amd64": X86, "arm64": ARM, "arm": ARM32, "riscv64": RISCV}

func (m *machine) native(threads int) (*Target, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if threads > m.logical {
		return nil, fmt.Errorf("target: %d threads asked for, but this machine has %d processors; ask for at most that many", threads, m.logical)
	}
	kinds, err := m.kinds()
	if err != nil {
		return nil, err
	}
	return m.target(&kinds[0], threads)
}

// check says that nothing is known of the machine's architecture.
func (m *machine) check() error {
	if _, ok := goArches[m.goarch]; !ok {
		return fmt.Errorf("target: this machine's architecture %s is not supported; name another target", m.goarch)
	}
	return nil
}

// target describes cores of a kind.
func (m *machine) target(k *kind, threads int) (*Target, error) {
	arch := goArches[m.goarch]
	c := &CPU{Arch: arch, Features: arches[arch].fromFlags(append(k.first.flags(arch), m.unlisted...)), Model: k.model}
	c.Cores = k.physicalCores(m.root, m.most(k))
	c.Threads = cmp.Or(threads, c.Cores)
	c.setVectors()
	c.setCaches(m.root, k.lead)
	t := &Target{Backend: Default, CPU: c}
	return t, t.Check()
}

const cpuDir = "sys/devices/system/cpu"

// Sizes assumed where the kernel does not tell.
const (
	defaultL1   = 32 << 10
	defaultL2   = 512 << 10
	defaultLine = 64
)

// setCaches reads those of a processor.
func (c *CPU) setCaches(root fs.FS, number int) {
	c.L1DataBytes, c.L2Bytes, c.CacheLineBytes = defaultL1, defaultL2, defaultLine
	dirs, _ := fs.Glob(root, fmt.Sprintf("%s/cpu%d/cache/index*", cpuDir, number))
	for _, dir := range dirs {
		size := parseSize(readString(root, path.Join(dir, "size")))
		if size == 0 || readString(root, path.Join(dir, "type")) == "Instruction" {
			continue
		}
		switch readString(root, path.Join(dir, "level")) {
		case "1":
			c.L1DataBytes = size
		case "2":
			c.L2Bytes = size
		case "3":
			c.L3Bytes = size
		}
		if line, err := strconv.Atoi(readString(root, path.Join(dir, "coherency_line_size"))); err == nil && line >= 16 {
			c.CacheLineBytes = line
		}
	}
}

func readString(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// parseSize reads sysfs sizes such as "48K" and "2M"; 0 when it is none.
func parseSize(s string) int64 {
	unit := int64(1)
	switch {
	case strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseInt(strings.TrimRight(s, "KM"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n * unit
}
