package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProcessesAreBornInTheirControlGroup checks that a process is in its group from its first instruction, and that
// the group is removed after it.
func TestProcessesAreBornInTheirControlGroup(t *testing.T) {
	own, err := ownGroup()
	if err != nil {
		t.Skipf("this kernel has no layer %s: %v", Memory, err)
	}
	g := &groups{dir: filepath.Join(own, fmt.Sprintf("tilth-test-%d", os.Getpid()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Skipf("this kernel has no layer %s: %v", Memory, err)
	}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	text, state := output(t, &Sandbox{groups: g}, Command{Program: "/bin/cat", Args: []string{"/proc/self/cgroup"}})
	if !state.Success() || !strings.Contains(text, filepath.Base(g.dir)+"/1\n") {
		t.Errorf("in %q, %v", text, state)
	}
}

// TestControlGroupsBoundMemory requires the memory controller of cgroup v2. The limit of the address space alone
// would allow more.
func TestControlGroupsBoundMemory(t *testing.T) {
	s, program := open(t), hostile(t)
	need(t, s, Memory)
	group, err := s.groups.open(Limits{MemoryBytes: 64 << 20, Processes: 10})
	if err != nil {
		t.Fatal(err)
	}
	script := &script{}
	script.add("run", unix.SYS_EXECVE, script.text(program), script.texts([]string{program, "use-up", "memory"}), script.texts(nil))
	p, err := script.run(0, group.descriptor())
	if err != nil {
		t.Fatal(err)
	}
	if state, err := p.Wait(); err != nil || state.Success() || !group.exhausted() {
		t.Errorf("ends by %v, %v; exhausted: %v", state, err, group.exhausted())
	}
	if err := group.close(); err != nil {
		t.Error(err)
	}
}

// TestRestartsReuseTheControlGroup checks that a program started again, or for a trial, starts in the group that was
// created for the process.
func TestRestartsReuseTheControlGroup(t *testing.T) {
	for _, c := range []struct {
		name, control string
		again         bool
	}{{leafName, "cpu memory pids\n", true}, {leafName, "memory\n", false}, {leafName, "", false}, {"tilth", "memory pids\n", false}} {
		parent := t.TempDir()
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte(c.control), 0o600); err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(parent, c.name)
		want := own
		if c.again {
			want = parent
		}
		if got := divided(own); got != want {
			t.Errorf("%s below %q: %s", c.name, c.control, got)
		}
	}
}

func TestControlGroupsReportMemoryKills(t *testing.T) {
	for text, want := range map[string]bool{
		"low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n": true,
		"low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n": false,
		"": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (&group{dir: dir}).exhausted(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if (*group)(nil).exhausted() {
		t.Error("no group is exhausted")
	}
}
