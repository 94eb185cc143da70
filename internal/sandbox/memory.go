package sandbox

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MachineMemory returns the size of the main memory, or 0 (no limit) if unknown.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// OwnMemory returns the memory available to this process and its children, which control groups (version 2)
// limit in a container.
func OwnMemory() int64 {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return MachineMemory()
	}
	return ownMemory(MachineMemory(), "/sys/fs/cgroup", string(groups))
}

// ownMemory returns the lowest limit of the groups and their ancestors.
func ownMemory(machine int64, root, groups string) int64 {
	smallest := machine
	for line := range strings.Lines(groups) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified {
			continue
		}
		for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
			text, err := os.ReadFile(path.Join(root, dir, "memory.max"))
			limit, notNumber := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && notNumber == nil && (smallest == 0 || limit < smallest) {
				smallest = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return smallest
}
