package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

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
	if err := divide(own); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if err := divide(g.dir); err != nil {
		return nil, errors.Join(err, g.close())
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
