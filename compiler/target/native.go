package target

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Native describes this machine. Zero threads means one a physical core.
func Native(threads int) (*Target, error) {
	return native(os.DirFS("/"), runtime.GOARCH, Processors(), threads, unlisted()...)
}

// Processors is how many logical processors this process may keep busy: those it may run on, less what a container's
// quota denies it, or what GOMAXPROCS says.
func Processors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// IsHost reports whether programs for the target run on this machine's architecture.
func (t *Target) IsHost() bool { return goArches[runtime.GOARCH] == t.CPU.Arch }

// goArches are the names of the architectures in Go.
var goArches = map[string]string{"amd64": X86, "arm64": ARM, "arm": ARM32, "riscv64": RISCV}

// native describes the machine whose /proc and /sys are under root, on which a process may use that many logical
// processors, and whose processor has more than the kernel lists.
func native(root fs.FS, goarch string, logical, threads int, more ...string) (*Target, error) {
	name, ok := goArches[goarch]
	if !ok {
		return nil, fmt.Errorf("target: this machine's architecture %s is not supported; name another target", goarch)
	}
	info, err := readCPUInfo(root)
	if err != nil {
		return nil, err
	}
	c := &CPU{Arch: name, Features: arches[name].fromFlags(append(info.flags(name), more...)), Model: info.model(name)}
	c.Cores = min(physicalCores(root, logical), logical)
	if threads > logical {
		return nil, fmt.Errorf("target: %d threads asked for, but this machine has %d processors; ask for at most that many", threads, logical)
	}
	c.Threads = threads
	if threads == 0 {
		c.Threads = c.Cores
	}
	c.setVectors()
	c.setCaches(root)
	t := &Target{Backend: Default, CPU: c}
	return t, t.Check()
}

const cpuDir = "sys/devices/system/cpu"

// physicalCores counts processors that are the first of their core's siblings; all of them when that is not told.
func physicalCores(root fs.FS, logical int) int {
	files, _ := fs.Glob(root, cpuDir+"/cpu[0-9]*/topology/thread_siblings_list")
	cores := map[string]bool{}
	for _, file := range files {
		if siblings := readString(root, file); siblings != "" {
			cores[siblings] = true
		}
	}
	if len(cores) == 0 {
		return logical
	}
	return len(cores)
}

// Sizes assumed where the kernel does not tell.
const (
	defaultL1   = 32 << 10
	defaultL2   = 512 << 10
	defaultLine = 64
)

func (c *CPU) setCaches(root fs.FS) {
	c.L1DataBytes, c.L2Bytes, c.CacheLineBytes = defaultL1, defaultL2, defaultLine
	dirs, _ := fs.Glob(root, cpuDir+"/cpu0/cache/index*")
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
