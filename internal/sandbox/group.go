package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// groups makes control groups (version 2), one for each process, below one that this process may divide.
type groups struct {
	dir  string
	next atomic.Uint64
}

// openGroups makes a group for all that this process starts. The rules are the kernel's
// (Documentation/admin-guide/cgroup-v2.rst): who divides a group has no processes in it, so this process goes to a
// group of its own first, if it is alone where it is.
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

// mountsOf is where control groups may be: alone, or beside those of version 1.
var mountsOf = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// ownGroup is the folder of this process's group.
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
	for _, w := range strings.Fields(string(text)) {
		if w == word {
			return true
		}
	}
	return false
}

// leafName is the group to which this process goes when it divides the one where it was.
const leafName = "runner"

// divided is the group that a process divided before it went to this one: it executed this program anew, or started
// it. Any other group stays.
func divided(own string) string {
	parent := filepath.Dir(own)
	control := filepath.Join(parent, "cgroup.subtree_control")
	if filepath.Base(own) == leafName && lists(control, "memory") && lists(control, "pids") && unix.Access(parent, unix.W_OK) == nil {
		return parent
	}
	return own
}

// divide lets groups below one have limits. In all groups but the first, this process must first leave it.
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

// group is one process's control group; nil where there are none.
type group struct {
	dir    string
	folder *os.File
}

// open makes a group with limits; none where g is nil.
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

// descriptor is the group's folder for the kernel; -1 when there is no group.
func (g *group) descriptor() int {
	if g == nil {
		return -1
	}
	return int(g.folder.Fd())
}

// exhausted says whether a process was killed since the group's memory was used up.
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

// close removes the group, the processes of which have ended.
func (g *group) close() error {
	if g == nil {
		return nil
	}
	return errors.Join(g.folder.Close(), os.Remove(g.dir))
}
