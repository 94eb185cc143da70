// Command tilth tunes neural-network kernels on real devices: the command line, and every service of the farm.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// version is set by the linker.
var version = "devel"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// run is the program: it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks to stop; the next one finds no handler any more, and kills.
	context.AfterFunc(ctx, stop)
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case a.started:
		fmt.Fprintf(stderr, "tilth: %s\n", oneLine(err))
		var usage *usageError
		if errors.As(err, &usage) {
			return exitUsage
		}
		return exitFailed
	}
	// The command never ran: its name, its arguments or its flags were wrong.
	fmt.Fprintf(stderr, "tilth: %s (see 'tilth --help')\n", oneLine(err))
	return exitUsage
}

// usageError is a value of a flag or argument that makes no sense, found by the command itself.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// oneLine joins what a cause may have brought in on several lines.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
