package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/boardmonitor"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/signing"
)

const boardMonitorLong = `Build the monitor of a board without an operating system: the firmware that lets a
runner measure there. It is an ELF file for flashing tools; 'objcopy -O binary' converts
it to raw bytes.

BOARD is the name of a known board, or a C header that describes the clock, memory and
serial port of another one; that also needs --target, --port and --ram: see
docs/boards.md.`

// monitorResult describes a built monitor in JSON.
type monitorResult struct {
	Board  string `json:"board"`
	Target string `json:"target"`
	File   string `json:"file"`
	// SizeBytes is the size of the file.
	SizeBytes int64 `json:"size_bytes"`
	// Digest is the digest of the monitor's sources, which the runner logs when the board answers.
	Digest string `json:"digest"`
}

// monitorFlags describes a custom board.
type monitorFlags struct{ target, port, rom, ram string }

func newBoardMonitor(a *app) *cobra.Command {
	var flags monitorFlags
	var output, compiler string
	c := &cobra.Command{
		Use: "monitor BOARD", Short: "Build the firmware that lets a runner measure on a board", Long: boardMonitorLong,
		Example: `  tilth board monitor mps2-an500 -o monitor.elf
  tilth board monitor my_board.h --target cortex-m7 --port my_uart.c --ram 0x20000000`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write, - for standard output (default monitor-NAME.elf)")
	c.Flags().StringVar(&flags.target, "target", "", "target of the header's board: "+strings.Join(target.Boards(), ", "))
	c.Flags().StringVar(&flags.port, "port", "", "serial port of the header's board: cmsdk, 16550, or a C `file`")
	c.Flags().StringVar(&flags.rom, "rom", "0", "`address` of the monitor's code, of the header's board")
	c.Flags().StringVar(&flags.ram, "ram", "", "`address` of the monitor's memory, 20 KiB, of the header's board")
	compilerFlag(c, &compiler)
	a.jsonFlag(c)
	return a.leaf(c, func(ctx context.Context, args []string) error {
		if err := onlyOutput(output, map[string]bool{"--json": a.asJSON}); err != nil {
			return err
		}
		board, err := flags.board(c, args[0])
		if err != nil {
			return err
		}
		machine, err := registry.Target(board.Target, 0)
		if err != nil {
			return &usageError{err}
		}
		tc, err := toolchain.Find(ctx, compiler)
		if err != nil {
			return err
		}
		made := monitorResult{Board: board.Name, Target: board.Target, File: cmp.Or(output, "monitor-"+board.Name+".elf"), Digest: board.Digest(machine)}
		made.SizeBytes, err = a.outputFile(made.File, func(file string) error {
			if err := tc.Build(ctx, board.Build(machine), file); err != nil {
				return fmt.Errorf("building the monitor of board %s: %w", board.Name, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.show(made, func(io.Writer) error {
			_, err := fmt.Fprintf(a.statusWriter(made.File), "wrote %s (%s), monitor %s of %s, a %s\n",
				made.File, humanize.Bytes(made.SizeBytes), made.Digest, made.Board, made.Target)
			return err
		})
	})
}

// maxSourceBytes bounds each file that describes a board.
const maxSourceBytes = 1 << 20

// board returns the named board or the one that a header describes.
func (f monitorFlags) board(c *cobra.Command, named string) (boardmonitor.Board, error) {
	if filepath.Ext(named) != ".h" {
		for _, flag := range []string{"target", "port", "rom", "ram"} {
			if c.Flags().Changed(flag) {
				return boardmonitor.Board{}, usagef("--%s is for a header's board: %s is known", flag, named)
			}
		}
		board, err := boardmonitor.Find(named)
		if err != nil {
			return board, &usageError{fmt.Errorf("%w, or name a header, such as my_board.h", err)}
		}
		return board, nil
	}
	if f.target == "" || f.port == "" || f.ram == "" {
		return boardmonitor.Board{}, usagef("board %s: say its --target, --port and --ram, too", named)
	}
	if !slices.Contains(target.Boards(), f.target) {
		return boardmonitor.Board{}, usagef("--target %s: it is not a microcontroller: use one of %s", f.target, strings.Join(target.Boards(), ", "))
	}
	d := boardmonitor.Description{Target: f.target, Port: f.port}
	var err error
	if d.Header, err = readSource(named); err != nil {
		return boardmonitor.Board{}, err
	}
	if filepath.Ext(f.port) == ".c" {
		d.Port = ""
		if d.PortSource, err = readSource(f.port); err != nil {
			return boardmonitor.Board{}, err
		}
	}
	if d.ROM, err = address("rom", f.rom); err != nil {
		return boardmonitor.Board{}, err
	}
	if d.RAM, err = address("ram", f.ram); err != nil {
		return boardmonitor.Board{}, err
	}
	board, err := boardmonitor.CustomBoard(strings.TrimSuffix(filepath.Base(named), ".h"), d)
	if err != nil {
		return board, &usageError{err}
	}
	return board, nil
}

func address(flag, text string) (uint32, error) {
	at, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return 0, usagef("--%s %s: want an address of 32 bits, such as 0x20000000", flag, text)
	}
	return uint32(at), nil
}

// readSource reads a file of C source.
func readSource(path string) (string, error) {
	f, err := signing.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSourceBytes+1))
	if err == nil && len(text) > maxSourceBytes {
		err = fmt.Errorf("%s: source of a board has at most %d bytes", path, maxSourceBytes)
	}
	return string(text), err
}
