package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/tilth-dev/tilth/internal/agent/update"
)

// version and commit are set by the linker.
var version, commit = "devel", ""

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit statuses. A command that a signal ended has 128 and the signal's number: 130 for an interrupt, 143 for a
// termination.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 128
)

// run is the program: it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	a := &app{stdin: stdin, stdout: screenOf(stdout), stderr: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	var ended *signalError
	switch {
	case errors.As(context.Cause(ctx), &ended) && !a.serves:
		fmt.Fprintf(stderr, "tilth: %s\n", ended.after(err))
		return exitSignal + int(ended.signal)
	case err == nil:
		return exitDone
	case a.started:
		fmt.Fprintf(stderr, "tilth: %s\n", oneLine(err))
		var usage *usageError
		if errors.As(err, &usage) {
			return exitUsage
		}
		var later *laterError
		if errors.As(err, &later) {
			return update.ExitLater
		}
		return exitFailed
	}
	// The command never ran: its name, its arguments or its flags were wrong.
	fmt.Fprintf(stderr, "tilth: %s\n", misuse(called, err))
	return exitUsage
}

// untilSignal ends the context at an interrupt or a termination, with a signalError as the cause. The first signal
// asks to stop; the next one finds no handler any more, and kills.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&signalError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// signalError says which signal asked the program to stop.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string {
	if e.signal == syscall.SIGINT {
		return "interrupted"
	}
	return e.signal.String()
}

// after is what a user is told at the end. What fails because a signal ended it goes without saying; what a parting
// error says does not.
func (e *signalError) after(err error) string {
	var parting *partingError
	if errors.As(err, &parting) {
		return e.Error() + ": " + oneLine(parting)
	}
	return e.Error()
}

// partingError is a failure that matters although the command was asked to stop: something goes on, or is not kept.
type partingError struct{ cause error }

func (e *partingError) Error() string { return e.cause.Error() }
func (e *partingError) Unwrap() error { return e.cause }

// parting marks a failure as a partingError; nil stays nil.
func parting(err error) error {
	if err == nil {
		return nil
	}
	return &partingError{err}
}

// usageError is a value of a flag or argument that makes no sense, found by the command itself.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// oneLine joins what a cause may have brought in on several lines, each said once: one failure may reach a command by
// several ways.
func oneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		line = strings.Join(strings.Fields(line), " ")
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, line) }) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}
