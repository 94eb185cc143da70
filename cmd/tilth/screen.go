package main

import (
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/tilth-dev/tilth/internal/show"
)

// screenOf is the writer with what tables need to know of it if it is a terminal, else the writer itself.
func screenOf(w io.Writer) io.Writer {
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return w
	}
	return &show.Screen{Writer: f, Width: widthOf(f), Colour: wantsColour(os.Getenv), Now: time.Now()}
}

// widthOf is a terminal's width in columns; 0 when it is not known. A terminal that does not say may have it in
// COLUMNS.
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

// wantsColour says whether a terminal gets colours: not where the user wants none (https://no-color.org), nor where it
// has none.
func wantsColour(env func(string) string) bool {
	return env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// wide has tables written whole to the terminal, with times in full.
func (a *app) wide() {
	if screen, is := a.stdout.(*show.Screen); is {
		screen.Width, screen.Full = 0, true
	}
}
