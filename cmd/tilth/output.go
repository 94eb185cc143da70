package main

import (
	"bufio"
	"encoding/json"
	"errors"
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

	"github.com/tilth-dev/tilth/internal/filesystem"
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

// stdio as a file name stands for standard input when reading and standard output when writing.
const stdio = "-"

// outputFlags lists the flags that name files to write.
var outputFlags = []string{"lock", "log", "output", "outputs", "plot"}

// checkOutputs returns an error if a file that a command's flags name cannot be written.
func checkOutputs(c *cobra.Command) error {
	for _, name := range outputFlags {
		if f := c.Flags().Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != stdio {
			if err := filesystem.CheckWritable(f.Value.String()); err != nil {
				return usagef("%s: %w", flagNames(f), err)
			}
		}
	}
	return nil
}

// writeFile writes a file like filesystem.WriteFile, or standard output.
func (a *app) writeFile(path string, fill func(io.Writer) error) error {
	if path != stdio {
		return filesystem.WriteFile(path, fill)
	}
	return a.writeStdout(fill)
}

// writePrivate is writeFile for files that only their owner may read.
func (a *app) writePrivate(path string, fill func(io.Writer) error) error {
	if path != stdio {
		return filesystem.WritePrivateFile(path, fill)
	}
	return a.writeStdout(fill)
}

func (a *app) writeStdout(fill func(io.Writer) error) error {
	b := bufio.NewWriterSize(a.binary, 1<<20)
	if err := errors.Join(fill(b), b.Flush()); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// statusWriter returns the writer for status messages: standard error if the file itself is standard output.
func (a *app) statusWriter(path string) io.Writer {
	if path == stdio {
		return a.stderr
	}
	return a.stdout
}

// fileName returns the name of a file for messages.
func fileName(path string) string {
	if path == stdio {
		return "standard output"
	}
	return path
}

// openInput opens a file for reading, or standard input.
func (a *app) openInput(path string) (io.ReadCloser, error) {
	if path == stdio {
		return io.NopCloser(a.stdin), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is a folder: name a file", path), f.Close())
	}
	return f, nil
}

// inputFile returns a regular file with the content of path, for readers that cannot use a pipe, and a
// function that removes it.
func (a *app) inputFile(path string) (file string, done func(), err error) {
	if path != stdio {
		return path, func() {}, nil
	}
	f, err := os.CreateTemp("", "tilth-stdin-*")
	if err != nil {
		return "", nil, fmt.Errorf("read standard input: %w", err)
	}
	done = func() { _ = os.Remove(f.Name()) } // a temporary file
	n, err := io.Copy(f, a.stdin)
	if err = errors.Join(err, f.Close()); err == nil && n == 0 {
		err = errors.New("it is empty, or was read before")
	}
	if err != nil {
		done()
		return "", nil, fmt.Errorf("read standard input: %w", err)
	}
	return f.Name(), done, nil
}

// outputFile writes a file that needs more than one pass, and copies it to standard output if requested. It returns
// the file's size.
func (a *app) outputFile(path string, write func(file string) error) (size int64, err error) {
	if path != stdio {
		if err := write(path); err != nil {
			return 0, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	dir, err := os.MkdirTemp("", "tilth-stdout-")
	if err != nil {
		return 0, fmt.Errorf("write standard output: %w", err)
	}
	defer os.RemoveAll(dir)
	file := dir + "/out"
	if err := write(file); err != nil {
		return 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, fmt.Errorf("write standard output: %w", err)
	}
	defer f.Close()
	err = a.writeStdout(func(w io.Writer) (err error) {
		size, err = io.Copy(w, f)
		return err
	})
	return size, err
}

// onlyOutput rejects other output that would mix with a file on standard output.
func onlyOutput(path string, others map[string]bool) error {
	for name, asked := range others {
		if path == stdio && asked {
			return usagef("%s prints to standard output, which the file needs: name a file", name)
		}
	}
	return nil
}
