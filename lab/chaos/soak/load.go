package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// spinArgument makes this program a load.
const spinArgument = "spin"

// spin keeps one processor busy until the process is killed.
func spin() {
	runtime.GOMAXPROCS(1)
	for x := uint64(1); ; x = x*6364136223846793005 + 1442695040888963407 {
		if x == 0 {
			fmt.Println() // never: the sequence has no zero after an odd start, which the compiler does not know
		}
	}
}

// load starts processes that compete for the processors, and returns what ends them. They end with this process, too.
func load(processes int) (stop func()) {
	var running []*exec.Cmd
	for range processes {
		cmd := exec.Command("/proc/self/exe", spinArgument)
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
