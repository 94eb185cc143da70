package soak

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// load starts busy processes and returns a function that ends them. They also end with this process.
func load(processes int) (stop func()) {
	var running []*exec.Cmd
	for range processes {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "soak: starting a load:", err)
			continue
		}
		running = append(running, cmd)
	}
	return func() {
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}
