package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// groups creates control groups (version 2), one per process, below a group that this process may divide.
type groups struct {
	dir  string
	next atomic.Uint64
}

// openGroups creates a group for all processes that this process starts. The kernel requires
// (Documentation/admin-guide/cgroup-v2.rst) that a divided group contains no processes, so this process first
// moves to its own group, if it is alone in its current one.
func openGroups() (*groups, error) {
	own, err := ownGroup()
	if err != nil {
		return nil, err
	}
	own = divided(own)
	for _, controller := range []string{"memory", "pids"} {
		if !lists(filepath.Join(own, "cgroup.controllers"), controller) {
			return nil, fmt.Errorf("the control group %s has no %s controller: delegate it (systemd: Delegate=yes)", own, controller)
		}
	}
	dir, err := os.MkdirTemp(own, "tilth-*") // a process may have several sandboxes
	if err != nil {
		return nil, fmt.Errorf("control groups: %w: delegate the group (systemd: Delegate=yes)", err)
	}
	g := &groups{dir: dir}
	for _, parent := range []string{own, g.dir} {
		if err := divide(parent); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	return g, nil
}

// mountsOf lists the mount points of control groups: version 2 alone, or beside version 1.
var mountsOf = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// ownGroup returns the folder of this process's group.
func ownGroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("control groups: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		path, is := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !is {
			continue
		}
		for _, mount := range mountsOf {
			dir := filepath.Join(mount, path)
			if _, err := os.Stat(filepath.Join(dir, "cgroup.controllers")); err == nil {
				return dir, nil
			}
		}
	}
	return "", errors.New("there are no control groups of version 2: boot with systemd.unified_cgroup_hierarchy=1")
}

func lists(file, word string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	return slices.Contains(strings.Fields(string(text)), word)
}

// leafName is the group that this process moves to when it divides its group.
const leafName = "runner"

// divided returns the group that this process, or a parent running this program, divided before. It returns
// other groups unchanged.
func divided(own string) string {
	parent := filepath.Dir(own)
	control := filepath.Join(parent, "cgroup.subtree_control")
	if filepath.Base(own) == leafName && lists(control, "memory") && lists(control, "pids") && unix.Access(parent, unix.W_OK) == nil {
		return parent
	}
	return own
}

// divide enables limits for the subgroups of a group. Unless it is the root group, this process must leave it first.
func divide(dir string) error {
	err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0)
	if err == nil {
		return nil
	}
	if procs, readErr := os.ReadFile(filepath.Join(dir, "cgroup.procs")); readErr != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("control groups: %w: start the runner in a group of its own (systemd-run --scope -p Delegate=yes)", err)
	}
	leaf := filepath.Join(dir, leafName)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("control groups: %w", err)
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0); err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	return nil
}

func (g *groups) close() error {
	if g == nil {
		return nil
	}
	return os.Remove(g.dir)
}

// group is the control group of one process; nil without control groups.
type group struct {
	dir    string
	folder *os.File
}

// open creates a group with limits. It returns nil if g is nil.
func (g *groups) open(l Limits) (*group, error) {
	if g == nil {
		return nil, nil
	}
	one := &group{dir: filepath.Join(g.dir, strconv.FormatUint(g.next.Add(1), 10))}
	if err := os.Mkdir(one.dir, 0o755); err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	err := one.limit(l)
	if err == nil {
		one.folder, err = os.Open(one.dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control groups: %w", err), os.Remove(one.dir))
	}
	return one, nil
}

func (g *group) limit(l Limits) error {
	values := []struct {
		file  string
		value int64
	}{{"memory.max", l.MemoryBytes}, {"pids.max", int64(l.Processes)}}
	for _, v := range values {
		if v.value <= 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(g.dir, v.file), []byte(strconv.FormatInt(v.value, 10)), 0); err != nil {
			return err
		}
	}
	if l.MemoryBytes <= 0 {
		return nil
	}
	err := os.WriteFile(filepath.Join(g.dir, "memory.swap.max"), []byte("0"), 0)
	if errors.Is(err, os.ErrNotExist) { // a kernel without swap accounting
		return nil
	}
	return err
}

// descriptor returns the descriptor of the group's folder, or -1.
func (g *group) descriptor() int {
	if g == nil {
		return -1
	}
	return int(g.folder.Fd())
}

// exhausted reports whether a process was killed because the group ran out of memory.
func (g *group) exhausted() bool {
	if g == nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if count, is := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); is {
			return count != "0"
		}
	}
	return false
}

// close removes the group, whose processes must have ended.
func (g *group) close() error {
	if g == nil {
		return nil
	}
	return errors.Join(g.folder.Close(), os.Remove(g.dir))
}

// Limits restricts the resources of a process. Zero values mean no limit, except for core files, which are
// never written.
type Limits struct {
	// MemoryBytes limits the address space and the control group.
	MemoryBytes int64
	// ReservedBytes is address space that does not count: the program's runtime reserves it without using it.
	ReservedBytes int64
	// ProcessorTime limits the CPU time of all threads, rounded up to seconds. The process is then killed.
	ProcessorTime time.Duration
	// Processes limits processes and threads.
	Processes int
	// OpenFiles limits the number of open files.
	OpenFiles int
	// FileBytes limits the size of a written file.
	FileBytes int64
}

// noCore is too small for any core file. A limit of 0 would still pipe cores to the machine's collector.
const noCore = 1

// limits sets per-process limits. The kernel counts processes per user, so they are limited only if the
// process has its own user.
func (s *script) limits(l Limits, ownUser bool) {
	s.layer = ""
	s.atMost("core files", unix.RLIMIT_CORE, noCore)
	if l.MemoryBytes > 0 {
		s.atMost("memory", unix.RLIMIT_AS, uint64(l.MemoryBytes+l.ReservedBytes))
	}
	if l.ProcessorTime > 0 {
		s.atMost("processor time", unix.RLIMIT_CPU, uint64((l.ProcessorTime+time.Second-1)/time.Second))
	}
	if l.Processes > 0 && ownUser {
		s.atMost("processes", unix.RLIMIT_NPROC, uint64(l.Processes))
	}
	if l.OpenFiles > 0 {
		s.atMost("open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles))
	}
	if l.FileBytes > 0 {
		s.atMost("file size", unix.RLIMIT_FSIZE, uint64(l.FileBytes))
	}
}

// atMost sets a limit, unless the machine has a lower one, which stays and cannot be raised.
func (s *script) atMost(what string, resource int, value uint64) {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err == nil {
		value = min(value, own.Max)
	}
	s.limit(what, resource, value)
}

// anyPriority lets a launcher such as chrt raise the priority of its program, as far as this process may.
func (s *script) anyPriority() {
	s.layer = ""
	for _, l := range []struct {
		what     string
		resource int
		max      uint64
	}{{"real-time priority", unix.RLIMIT_RTPRIO, 99}, {"priority", unix.RLIMIT_NICE, 40}} {
		var own unix.Rlimit
		if err := unix.Getrlimit(l.resource, &own); err == nil && unix.Geteuid() != 0 {
			l.max = min(l.max, own.Max)
		}
		s.limit(l.what, l.resource, l.max)
		s.calls[len(s.calls)-1].optional = true
	}
}

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
