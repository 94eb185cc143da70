package target

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Native describes this machine; among several core classes, the fastest. Zero threads means one per physical core.
// Threads beyond the processors of the class run on those of others.
func Native(threads int) (*Target, error) { return here().native(threads) }

// machine is the machine of a process.
type machine struct {
	// root contains /proc and /sys.
	root   fs.FS
	goarch string
	// logical is the number of processors available to the process, allowed lists them; nil means all.
	logical int
	allowed []int
	// unlisted holds processor features that the kernel does not list.
	unlisted []string
}

// here returns this process's machine.
func here() *machine {
	return &machine{root: os.DirFS("/"), goarch: runtime.GOARCH, logical: Processors(), allowed: allowed(), unlisted: unlisted()}
}

// allowed returns the processors that this process may run on; nil if unknown.
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

// Processors returns the number of logical processors available to this process: those it may run on, within a
// container's quota and GOMAXPROCS.
func Processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// IsHost reports whether this machine's architecture runs programs for the target.
func (t *Target) IsHost() bool { return goArches[runtime.GOARCH] == t.CPU.Arch }

// goArches maps Go's architecture names.
var goArches = map[string]string{"amd64": X86, "arm64": ARM, "arm": ARM32, "riscv64": RISCV}

func (m *machine) native(threads int) (*Target, error) {
	kinds, err := m.kinds()
	if err != nil {
		return nil, err
	}
	if threads > m.logical {
		return nil, fmt.Errorf("target: %d threads asked for, but this machine has %d processors: %w", threads, m.logical, ErrThreads)
	}
	return m.target(&kinds[0], threads)
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

// Sizes assumed if the kernel does not report them.
const (
	defaultL1   = 32 << 10
	defaultL2   = 512 << 10
	defaultLine = 64
)

// setCaches reads the caches of a processor.
func (c *CPU) setCaches(root fs.FS, number int) {
	c.L1DataBytes, c.L2Bytes, c.CacheLineBytes = defaultL1, defaultL2, defaultLine
	dirs, _ := fs.Glob(root, fmt.Sprintf("%s/cpu%d/cache/index*", cpuDir, number))
	for _, dir := range dirs {
		size := parseSize(filesystem.Text(root, path.Join(dir, "size")))
		if size == 0 || filesystem.Text(root, path.Join(dir, "type")) == "Instruction" {
			continue
		}
		switch filesystem.Text(root, path.Join(dir, "level")) {
		case "1":
			c.L1DataBytes = size
		case "2":
			c.L2Bytes = size
		case "3":
			c.L3Bytes = size
		}
		if line, err := strconv.Atoi(filesystem.Text(root, path.Join(dir, "coherency_line_size"))); err == nil && line >= 16 {
			c.CacheLineBytes = line
		}
	}
}

// parseSize parses sysfs sizes such as "48K" and "2M"; 0 if invalid.
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

// cpuinfo is an entry of /proc/cpuinfo.
type cpuinfo map[string]string

// readCPUInfo reads the entries of all processors, at least one.
func readCPUInfo(root fs.FS) (list []cpuinfo, err error) {
	data, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return nil, fmt.Errorf("target: reading the processor's description: %w", err)
	}
	info := cpuinfo{}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, ":")
		if ok {
			info[strings.TrimSpace(key)] = strings.TrimSpace(value)
		} else if len(info) > 0 { // an empty line ends an entry
			list, info = append(list, info), cpuinfo{}
		}
	}
	list = append(list, info)
	// Boards append entries that describe no processor.
	processors := slices.DeleteFunc(slices.Clone(list), func(c cpuinfo) bool { return c["processor"] == "" })
	if len(processors) == 0 {
		processors = list[:1]
	}
	return processors, nil
}

// model returns the processor model. Virtual machines hide marketing names, so the identifying numbers are included.
func (c cpuinfo) model(archName string) string {
	switch archName {
	case X86:
		name := strings.NewReplacer("(R)", "", "(TM)", "", " CPU", "").Replace(c["model name"])
		return strings.Join(strings.Fields(name), " ") + " " + c["cpu family"] + "." + c["model"] + "." + c["stepping"]
	case ARM, ARM32:
		return strings.TrimSpace(c["CPU implementer"] + " " + c["CPU part"] + " r" + c["CPU variant"] + "p" + c["CPU revision"])
	default:
		return c["uarch"]
	}
}

func (c cpuinfo) flags(archName string) []string {
	switch archName {
	case X86:
		return strings.Fields(c["flags"])
	case ARM, ARM32:
		return strings.Fields(c["Features"])
	default: // the letter v may denote a draft of the extension, so it is ignored
		_, names, _ := strings.Cut(c["isa"], "_")
		return strings.Split(names, "_")
	}
}
