package main

import (
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
)

// emulatorFlag names a command that runs programs of another architecture.
type emulatorFlag struct {
	text string
	// command holds its words after check; empty without an emulator.
	command []string
}

func (f *emulatorFlag) add(c *cobra.Command, use string) {
	c.Flags().StringVar(&f.text, "emulator", "", use)
}

// check splits the command.
func (f *emulatorFlag) check() error {
	if f.text == "" {
		return nil
	}
	f.command = strings.Fields(f.text)
	if len(f.command) == 0 {
		return usagef("--emulator %q: want a command, such as \"qemu-riscv64 -cpu rv64,v=true\"", f.text)
	}
	return nil
}

// find locates the emulator's program. It must be called after check.
func (f *emulatorFlag) find() error {
	if len(f.command) == 0 {
		return nil
	}
	if _, err := exec.LookPath(f.command[0]); err != nil {
		return usagef("--emulator: %w: install it, or give its path", err)
	}
	return nil
}
