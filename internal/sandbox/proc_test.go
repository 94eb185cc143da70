package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// besideDriver returns a sandbox with the layers that device drivers support.
func besideDriver(s *Sandbox) *Sandbox {
	return s.Only(Processes, Network, IPC, Hostname, Privileges, Memory)
}

// TestDriversFindTheirThreadsInProc checks that a driver can access its threads in /proc, which must match its PID
// namespace, if there is one.
func TestDriversFindTheirThreadsInProc(t *testing.T) {
	s, driver := open(t), program(t, "driver")
	check(t, nil, Command{Program: driver})
	check(t, besideDriver(s), Command{Program: driver})
	t.Run("alone", func(t *testing.T) {
		need(t, besideDriver(s), Processes)
		check(t, besideDriver(s), Command{Program: driver, Args: []string{"alone"}})
	})
}

// TestMountsOfADriverAreItsOwn checks that the machine's /proc does not change.
func TestMountsOfADriverAreItsOwn(t *testing.T) {
	s := open(t)
	mounts := func() string {
		text, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := mounts()
	if inside, state := output(t, besideDriver(s), Command{Program: "/bin/cat", Args: []string{"/proc/self/mountinfo"}}); inside == "" || !state.Success() {
		t.Errorf("it has mounts %q, and ends by %v", inside, state)
	}
	if after := mounts(); after != before {
		t.Errorf("there are mounts\n%s\nwhich were\n%s", after, before)
	}
}

// hiddenVariable marks a test that was restarted where /proc cannot be mounted.
const hiddenVariable = "TILTH_TEST_HIDDEN_PROC"

// TestDriversDoWithoutALayerWhereProcCannotBeMounted covers containers: the kernel refuses a new /proc if parts of
// the machine's are hidden.
func TestDriversDoWithoutALayerWhereProcCannotBeMounted(t *testing.T) {
	if os.Getenv(hiddenVariable) == "" {
		t.Log(againWithHiddenProc(t))
		return
	}
	s, driver := open(t), program(t, "driver")
	need(t, s, Processes)
	for _, state := range s.States() {
		if state.Layer == Processes && !strings.HasPrefix(state.Except, "programs that see the machine's files, such as a device's driver: mount /proc: ") {
			t.Errorf("got %+v", state)
		}
	}
	if missing := strings.Join(besideDriver(s).Missing(), "; "); !strings.Contains(missing, "processes: programs that see") {
		t.Errorf("beside a driver, %q is missing", missing)
	}
	check(t, besideDriver(s), Command{Program: driver})
	if text, state := output(t, s, Command{Program: "/bin/echo", Args: []string{"hello"}}); text != "hello\n" || !state.Success() {
		t.Errorf("with all layers: %q, %v", text, state)
	}
}

// againWithHiddenProc runs the test as another user, with a mount within /proc.
func againWithHiddenProc(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can hide a part of /proc")
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := reachable(t)
	again := filepath.Join(dir, "sandbox.test")
	if err := os.WriteFile(again, program, 0o755); err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(scratch, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount --bind /dev/null /proc/kallsyms && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "sh",
		again, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), hiddenVariable+"=1", "TMPDIR="+scratch)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS") {
		t.Skipf("there are no namespaces for users: %s", out)
	}
	return string(out)
}
