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

// boardFlag names a board without an operating system.
type boardFlag struct{ name string }

func (f *boardFlag) add(c *cobra.Command, use string) {
	c.Flags().StringVar(&f.name, "board", "", use+": "+strings.Join(boards.Names(), ", ")+" (emulated), or a JSON `file`")
}

// target is the name of the target that the board is; named is that of --target, which need not be given, and the
// target where there is no board.
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

// attached is a board that is reached, if one is named, and what is to be done at the end.
type attached struct {
	*boards.Board
	scratch string
}

// open reaches the board, whose monitor the compiler builds where there is none yet. Without a board there is nothing
// to reach.
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
		tc = nil // opening says whether one is needed
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
