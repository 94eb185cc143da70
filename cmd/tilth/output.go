package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// jsonFlag adds --json.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.asJSON, "json", false, "print JSON for scripts")
}

// tableFlags adds the flags of commands that print tables: --json and --wide.
func (a *app) tableFlags(c *cobra.Command) {
	a.jsonFlag(c)
	c.Flags().BoolFunc("wide", "on a terminal: do not shorten tables and times", func(text string) error {
		wide, err := strconv.ParseBool(text)
		if screen, is := a.stdout.(*humanize.Screen); wide && is {
			screen.Width, screen.Full = 0, true
		}
		return err
	})
}

// writeJSON writes a value as indented JSON, in which unprintable characters are escaped.
func writeJSON(w io.Writer, v any) error {
	var text, escaped strings.Builder
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	for _, r := range text.String() {
		if r == '\n' || unicode.IsPrint(r) {
			escaped.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	_, err := io.WriteString(w, escaped.String())
	return err
}

// show writes a value as JSON, or has text write it as text.
func (a *app) show(v any, text func(io.Writer) error) error {
	if a.asJSON {
		return writeJSON(a.stdout, v)
	}
	return text(a.stdout)
}

// printResult writes a result as JSON or as formatted text.
func (a *app) printResult(v any, format string, args ...any) error {
	return a.show(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	})
}

// list writes rows as JSON or as a table.
func list[T any](a *app, rows []T, table *humanize.Table, row func(T) []string) error {
	for _, r := range rows {
		table.Row(row(r)...)
	}
	return a.show(append([]T{}, rows...), table.Write)
}

// screenOf returns a Screen if the writer is a terminal, or else a Clean writer.
func screenOf(w io.Writer) io.Writer {
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return humanize.Clean{Writer: w}
	}
	colour := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // see https://no-color.org
	return &humanize.Screen{Writer: f, Width: widthOf(f), Colour: colour, Now: time.Now()}
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
