package boards

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/boardmonitor"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// terminal returns a pseudo-terminal. The test keeps both ends open, so the line outlives its users.
func terminal(t *testing.T) (master *os.File, slave string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave = "/dev/pts/" + strconv.Itoa(n)
	kept, err := openTTY(slave, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	return master, slave
}

// onSerialLine starts an emulated board with its serial port on a pseudo-terminal, and restarts it whenever it ends.
// starts counts the starts, and the file pid holds its PID.
func onSerialLine(t *testing.T, name, pid string) (starts *atomic.Int32, slave string) {
	t.Helper()
	d, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath(d.Command[0])
	if err != nil {
		t.Skipf("there is no emulator of boards: %v: run scripts/packages.sh bare", err)
	}
	master, slave := terminal(t)
	image := filepath.Join(t.TempDir(), "monitor.elf")
	made, err := boardmonitor.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := registry.Target(d.Target, 0)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := tc.Build(t.Context(), made.Build(machine), image); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(d.Command[1:])
	for k, word := range args {
		switch {
		case word == monitorWord:
			args[k] = image
		case strings.HasPrefix(word, "socket,id=link"):
			args[k] = "serial,id=link,path=/dev/fdset/1"
		}
	}
	args = append(args, "-add-fd", "fd=3,set=1")
	starts = &atomic.Int32{}
	start := func() *exec.Cmd {
		c := exec.Command(program, args...)
		c.ExtraFiles = []*os.File{master}
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Error(err)
			return nil
		}
		if err := os.WriteFile(pid, fmt.Appendf(nil, "%d", c.Process.Pid), 0o600); err != nil {
			t.Error(err)
		}
		starts.Add(1)
		return c
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			c := start()
			if c == nil {
				return
			}
			end := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
			_ = c.Wait() // it was killed
			end()
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return starts, slave
}

// TestBoardOnASerialLineIsReset uses a board description with tty and reset over a pseudo-terminal. When the board
// is silent, the reset command recovers it by ending the emulator, which is then restarted.
func TestBoardOnASerialLineIsReset(t *testing.T) {
	t.Parallel() // mostly waits
	pid, file := filepath.Join(t.TempDir(), "pid"), filepath.Join(t.TempDir(), "mine.json")
	starts, slave := onSerialLine(t, "mps2-an500", pid)
	text := fmt.Sprintf(`{"name": "mps2-an500", "target": "cortex-m7", "tty": %q, "baud": 921600, "reset": ["sh", "-c", "kill -9 $(cat %s)"]}`, slave, pid)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Find(file)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := registry.Target(d.Target, 0)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b, err := Open(t.Context(), Config{Description: d, Machine: machine, Logger: slog.New(slog.NewTextHandler(&log, nil)), Patience: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	exchange := func() {
		t.Helper()
		c, hello := client(t, b)
		data := bytes.Repeat([]byte("\x00\x03\x04\r\n\x11\x13\x7f\xff"), 1000) // control characters of terminals and modems
		if err := c.Write(hello.Memory, data); err != nil {
			t.Fatal(err)
		}
		back, err := c.Read(hello.Memory, uint32(len(data)))
		if err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%d bytes come back as %d others: %v", len(data), len(back), err)
		}
	}
	exchange()
	before := starts.Load()
	if out, err := exec.Command("sh", "-c", "kill -STOP $(cat "+pid+")").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// On a busy machine the emulator may start too slowly, so the board is reset again.
	for until := time.Now().Add(10 * time.Minute); ; {
		line, err := b.Line(t.Context())
		if err == nil {
			line.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	exchange()
	if b.Resets() < 1 || starts.Load() <= before {
		t.Errorf("%d resets, %d emulators", b.Resets(), starts.Load())
	}
	if !strings.Contains(log.String(), "the board is reset") {
		t.Errorf("the log says %s", log.String())
	}
}

// TestLostBoardIsLoggedOnce checks that the log reports the loss and the return of a board once.
func TestLostBoardIsLoggedOnce(t *testing.T) {
	b := open(t, "mps2-an500")
	var log bytes.Buffer
	b.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	program := b.command[0]
	b.command[0] = filepath.Join(t.TempDir(), "gone")
	if err := b.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if line, err := b.Line(t.Context()); err == nil {
			line.Close()
			t.Fatal("a board that is gone answers")
		}
	}
	b.command[0] = program
	for range 2 {
		line, err := b.Line(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		line.Close()
	}
	for _, message := range []string{"the board does not answer", "the board answers again"} {
		if n := strings.Count(log.String(), message); n != 1 {
			t.Errorf("%q is said %d times: %s", message, n, log.String())
		}
	}
}
