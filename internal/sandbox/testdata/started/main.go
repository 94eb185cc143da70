// Program started starts programs as a runner does, where an emulator runs it: it has a sealed file in memory say so.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/internal/sandbox"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "started:", err)
		os.Exit(1)
	}
}

// run has a program copied into memory, and runs it by descriptor, and by its name under a launcher.
func run(program string, launcher []string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "program")
	if _, err := file.Write(data); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return err
	}
	said := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for _, c := range []sandbox.Command{
		{Program: "/sealed", Executable: file, Args: []string{"by descriptor"}, Descriptors: said},
		{Program: program, Args: []string{"by name"}, Descriptors: said},
		{Launcher: launcher, Program: program, Args: []string{"under a launcher"}, Descriptors: said},
	} {
		if c.Args[0] == "under a launcher" && len(launcher) == 0 {
			continue
		}
		p, err := (*sandbox.Sandbox)(nil).Start(c)
		if err != nil {
			return err
		}
		state, _, err := p.Finish()
		if err != nil {
			return err
		}
		if !state.Success() {
			return fmt.Errorf("%s: %s", c.Args[0], state)
		}
	}
	return nil
}
