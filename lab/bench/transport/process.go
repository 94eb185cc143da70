package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// serveArgument is the argument with which this program is a server's process.
const serveArgument = "serve"

// process is a server in a process of its own.
type process struct {
	addr      string
	cmd       *exec.Cmd
	in        io.WriteCloser
	answers   *json.Decoder
	complaint strings.Builder
}

// start starts a server, and returns once it answers.
func start(ctx context.Context, o orders) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{cmd: exec.CommandContext(ctx, program, serveArgument)}
	p.cmd.Stderr = &p.complaint
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	p.answers = json.NewDecoder(out)
	if err := p.ask(o, &p.addr); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// ask sends a line and reads the answer.
func (p *process) ask(line, answer any) error {
	if err := json.NewEncoder(p.in).Encode(line); err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	if err := p.answers.Decode(answer); err != nil {
		return fmt.Errorf("hear the server: %w", err)
	}
	return nil
}

func (p *process) usage() (u usage, err error) {
	err = p.ask("usage", &u)
	return u, err
}

// stop ends the server, and returns what it complains of.
func (p *process) stop() error {
	_ = p.in.Close() // a process that has ended says why
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the server: %w: %s", err, strings.TrimSpace(p.complaint.String()))
	}
	return nil
}
