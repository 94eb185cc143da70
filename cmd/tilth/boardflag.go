package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/runner/boards"
)

// boardFlag names a bare-metal board.
type boardFlag struct{ name string }

func (f *boardFlag) add(c *cobra.Command, use string) {
	c.Flags().StringVar(&f.name, "board", "", use+": "+strings.Join(boards.Names(), ", ")+" (emulated), or a JSON `file`")
}

// target returns the name of the board's target, or named, the value of --target, if there is no board.
func (f *boardFlag) target(named string) (string, error) {
	if f.name == "" {
		return named, nil
	}
	d, err := boards.Find(f.name)
	if err != nil {
		return "", &usageError{err}
	}
	if named != "native" && named != d.Target {
		return "", usagef("--target %s: board %s is %s; leave --target out", named, f.name, d.Target)
	}
	return d.Target, nil
}

// attached is a connected board, if one is named, with its scratch folder.
type attached struct {
	*boards.Board
	scratch string
}

// open connects to the board and builds its monitor if necessary. Without a board it does nothing.
func (f *boardFlag) open(ctx context.Context, compiler string, log *slog.Logger) (*attached, error) {
	if f.name == "" {
		return &attached{}, nil
	}
	d, err := boards.Find(f.name)
	if err != nil {
		return nil, &usageError{err}
	}
	machine, err := registry.Target(d.Target, 0)
	if err != nil {
		return nil, err
	}
	tc, err := toolchain.Find(ctx, compiler)
	if err != nil {
		tc = nil // boards.Open reports whether a compiler is needed
	}
	scratch, err := os.MkdirTemp("", "tilth-board-*")
	if err != nil {
		return nil, err
	}
	board, err := boards.Open(ctx, boards.Config{Description: d, Machine: machine, Toolchain: tc, Scratch: scratch, Logger: log})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	h := board.Hello()
	log.Info("the board answers", "board", h.Board, "monitor", h.Digest, "memory_bytes", h.MemoryBytes, "clock_hz", h.Hertz)
	return &attached{board, scratch}, nil
}

func (a *attached) close() error {
	if a.Board == nil {
		return nil
	}
	return errors.Join(a.Close(), os.RemoveAll(a.scratch))
}
