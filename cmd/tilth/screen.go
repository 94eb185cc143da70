package main

import (
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/tilth-dev/tilth/internal/show"
)

// screenOf returns a Screen if the writer is a terminal, or else the writer.
func screenOf(w io.Writer) io.Writer {
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return w
	}
	return &show.Screen{Writer: f, Width: widthOf(f), Colour: wantsColour(os.Getenv), Now: time.Now()}
}

// widthOf returns a terminal's width in columns, or 0 if unknown. COLUMNS is the fallback.
func widthOf(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	width, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		return 0
	}
	return max(width, 0)
}

// wantsColour reports whether to use colours, honouring NO_COLOR (https://no-color.org) and TERM.
func wantsColour(env func(string) string) bool {
	return env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// wide disables shortening in tables on the terminal.
func (a *app) wide() {
	if screen, is := a.stdout.(*show.Screen); is {
		screen.Width, screen.Full = 0, true
	}
}
