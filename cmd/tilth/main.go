package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/agent/update"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// version and commit are set by the linker.
var version, commit = "devel", ""

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// Exit statuses. A command ended by a signal exits with 128 plus the signal's number: 130 for an interrupt,
// 143 for a termination.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	// exitUndecided is the exit status of a test that needs more time.
	exitUndecided = 3
	exitSignal    = 128
)

// run runs the program and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal()
	defer stop()
	a := &app{stdin: stdin, binary: stdout, stdout: screenOf(stdout), stderr: humanize.Clean{Writer: stderr}}
	root := newRoot(a)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	var ended *signalError
	switch {
	case errors.As(context.Cause(ctx), &ended) && !a.serves:
		fmt.Fprintf(a.stderr, "tilth: %s\n", ended.after(err))
		return exitSignal + int(ended.signal)
	case err == nil:
		return exitDone
	case a.started:
		fmt.Fprintf(a.stderr, "tilth: %s\n", oneLine(err))
		if errors.As(err, new(*usageError)) || errors.Is(err, target.ErrThreads) {
			return exitUsage
		}
		if errors.As(err, new(*undecidedError)) {
			return exitUndecided
		}
		if errors.As(err, new(*laterError)) {
			return update.ExitLater
		}
		return exitFailed
	}
	// The command never started: its name, arguments or flags were wrong.
	fmt.Fprintf(a.stderr, "tilth: %s (see '%s --help')\n", oneLine(err), called.CommandPath())
	return exitUsage
}

// untilSignal returns a context that ends at an interrupt or termination, with a signalError as the cause.
// The first signal requests a stop; the next one kills the process.
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

// signalError identifies the signal that stopped the program.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string {
	if e.signal == syscall.SIGINT {
		return "interrupted"
	}
	return e.signal.String()
}

// after returns the final message. Failures caused by the signal are omitted, except for parting errors.
func (e *signalError) after(err error) string {
	if parting, ok := errors.AsType[*partingError](err); ok {
		return e.Error() + ": " + oneLine(parting)
	}
	return e.Error()
}

// partingError is a failure that matters even after a requested stop: something continues, or data are lost.
type partingError struct{ error }

func (e *partingError) Unwrap() error { return e.error }

// parting wraps a failure as a partingError; nil stays nil.
func parting(err error) error {
	if err == nil {
		return nil
	}
	return &partingError{err}
}

// usageError is an invalid flag or argument, detected by the command itself.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// oneLine joins the lines of an error and drops repeated ones, because one failure may be reported several times. It
// keeps the beginning and the end of a long one, which name what failed and the remedy.
func oneLine(err error) string {
	const maxColumns = 1000
	var said []string
	for line := range strings.Lines(err.Error()) {
		line = strings.Join(strings.Fields(line), " ")
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, line) }) {
			said = append(said, line)
		}
	}
	return humanize.ElideMiddle(strings.Join(said, "; "), maxColumns)
}

// buildRow identifies a build of the program.
type buildRow struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"go_version"`
	Platform  string `json:"platform"`
	// LoadsPackages is false for a static build, which cannot run packages on processors.
	LoadsPackages bool `json:"loads_packages"`
}

// thisBuild describes this program.
func thisBuild() buildRow {
	return buildRow{
		Version: version, Commit: cmp.Or(commit, stampedCommit(), "unknown"), GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, LoadsPackages: aot.Loads,
	}
}

// stampedCommit returns the commit recorded by the go command, as a fallback for the linker's.
func stampedCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func (b buildRow) String() string {
	kind := ""
	if !b.LoadsPackages {
		kind = ", static"
	}
	return fmt.Sprintf("tilth version %s (commit %.12s, %s, %s%s)", b.Version, b.Commit, b.GoVersion, b.Platform, kind)
}

func newVersion(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version, its commit, and what it was built with and for",
		Example: "  tilth version\n  tilth version --json",
	}
	a.jsonFlag(c)
	return a.leaf(c, func(context.Context, []string) error {
		return a.printResult(thisBuild(), "%s\n", thisBuild())
	})
}
