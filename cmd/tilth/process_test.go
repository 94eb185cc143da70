package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// process is a run of the program.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// ended reports whether the started process has exited, without reaping it.
func (p *process) ended() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

func (f *farmUnderTest) tilth(ctx context.Context, args ...string) *process {
	p := &process{t: f.t, cmd: exec.CommandContext(ctx, "tilth", args...)}
	p.cmd.Env = f.env()
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	return p
}

func (p *process) start() {
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.t.Failed() && p.cmd.ProcessState == nil { // not waited for
			_ = p.cmd.Process.Kill()
			err := p.cmd.Wait()
			p.t.Logf("tilth %s: %v\n%s", strings.Join(p.cmd.Args[1:], " "), err, p.stderr.String())
		}
	})
}

func (p *process) mustEnd() {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("tilth %s: %v\n%s", strings.Join(p.cmd.Args[1:], " "), err, p.stderr.String())
	}
}

func (p *process) mustRun() {
	p.t.Helper()
	p.start()
	p.mustEnd()
}
