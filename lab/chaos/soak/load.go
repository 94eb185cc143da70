package soak

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// load starts processes that compete for the processors, and returns what ends them. They end with this process, too.
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
