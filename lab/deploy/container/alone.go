package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// folderVariable marks the inner process and names its folder.
const folderVariable = "TILTH_CONTAINER_TEST_FOLDER"

// unable is why containers cannot run here.
var unable string

// Main is TestMain of packages that run containers. It runs the tests in a process that is the first one of PID and
// mount namespaces of its own: what they start and mount ends with it, however it ends.
func Main(m *testing.M) int {
	if os.Getenv(folderVariable) != "" {
		if err := enter(); err != nil {
			fmt.Fprintf(os.Stderr, "cannot make namespaces ready: %v\n", err)
			return 1
		}
		return m.Run()
	}
	if unable = whyNot(); unable != "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "containers")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	return runAlone(folder)
}

// Need skips a test where the kernel or the user cannot run containers, and fails it where only a package lacks.
func Need(t testing.TB) {
	t.Helper()
	if unable != "" {
		t.Skip(unable)
	}
	for _, program := range []string{"runc", "nft", "prometheus"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not installed: run scripts/packages.sh test", program)
		}
	}
}

func runAlone(folder string) int {
	inner := exec.Command("/proc/self/exe")
	for _, arg := range os.Args[1:] {
		// The outer process has that file.
		if !strings.HasPrefix(arg, "-test.testlogfile=") {
			inner.Args = append(inner.Args, arg)
		}
	}
	inner.Env = append(os.Environ(), folderVariable+"="+folder)
	inner.Stdin, inner.Stdout, inner.Stderr = os.Stdin, os.Stdout, os.Stderr
	inner.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	err := inner.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return max(failed.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot run the tests in namespaces: %v\n", err)
		return 1
	}
	return 0
}

// enter takes the mounts from the machine's, and shows the processes of this namespace.
func enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// whyNot tries what the tests need of the kernel; "" when it has it all.
func whyNot() string {
	if os.Geteuid() != 0 {
		return "only root can mount images and make networks"
	}
	try := exec.Command("true")
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET}
	if err := try.Run(); err != nil {
		return fmt.Sprintf("the kernel gives no namespaces: %v", err)
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || !strings.Contains(string(known), "\toverlay\n") {
		return fmt.Sprintf("the kernel has no overlay file system (%v)", err)
	}
	if err := tryNetwork(); err != nil {
		return fmt.Sprintf("the kernel has no bridges or virtual wires: %v", err)
	}
	return ""
}
