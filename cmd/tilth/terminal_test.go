package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// onTerminal runs a command on a terminal with a number of columns and writes its output to the file "screen":
// terminal COLUMNS PROGRAM ARGS.
func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal COLUMNS PROGRAM ARGS")
	}
	columns, err := strconv.ParseUint(args[0], 10, 16)
	ts.Check(err)
	screen, terminal, err := openTerminal(uint16(columns))
	ts.Check(err)
	defer screen.Close()
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	c := exec.Command(path, args[2:]...)
	var failure bytes.Buffer
	c.Stdout, c.Stderr, c.Dir = terminal, &failure, ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "COLUMNS", "NO_COLOR", "TERM", "TMPDIR"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(c.Start())
	ts.Check(terminal.Close())
	shown, _ := io.ReadAll(screen) // ends with an error when the terminal is closed
	if err := c.Wait(); err != nil {
		ts.Fatalf("%v: %s", err, failure.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), bytes.ReplaceAll(shown, []byte("\r\n"), []byte("\n")), 0o600))
}

func TestDumbTerminalGetsNoEscapes(t *testing.T) {
	screen, terminal, err := openTerminal(80)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer terminal.Close()
	for term, live := range map[string]bool{"xterm": true, "dumb": false} {
		t.Setenv("TERM", term)
		if _, is := terminalOf(humanize.Clean{Writer: terminal}); is != live {
			t.Errorf("on TERM=%s the progress is redrawn: %v, want %v", term, is, live)
		}
		if got := screenOf(terminal).(*humanize.Screen).Colour; got != live {
			t.Errorf("on TERM=%s there are colours: %v, want %v", term, got, live)
		}
	}
}

// openTerminal creates a pseudo-terminal. Output to terminal can be read from screen.
func openTerminal(columns uint16) (screen, terminal *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24})
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		screen.Close()
	}
	return screen, terminal, err
}
