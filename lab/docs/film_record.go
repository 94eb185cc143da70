package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// piece is one write of a program, with its time since the start.
type piece struct {
	at   time.Duration
	text []byte
}

// record runs a program in a terminal until it ends.
func record(ctx context.Context, columns, lines int, command []string) (shown []piece, err error) {
	screen, terminal, err := open(columns, lines)
	if err != nil {
		return nil, fmt.Errorf("no terminal: %w", err)
	}
	defer screen.Close()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	c.Env = append(os.Environ(), "TERM=xterm")
	began := time.Now()
	err = c.Start()
	terminal.Close()
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := screen.Read(buffer)
		if n > 0 {
			shown = append(shown, piece{time.Since(began), append([]byte(nil), buffer[:n]...)})
		}
		if err != nil { // also at the end, when the terminal is closed
			break
		}
	}
	return shown, c.Wait()
}

// open creates a pseudo-terminal. Output to terminal can be read from screen.
func open(columns, lines int) (screen, terminal *os.File, err error) {
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(lines)})
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		screen.Close()
	}
	return screen, terminal, err
}
