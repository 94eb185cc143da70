package main

import (
	"bufio"
	"context"
	_ "embed" // for the program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

//go:embed peers.py
var peersProgram string

// question is what peers are asked for: seconds of a product, or of a model.
type question struct {
	What  string `json:"what"`
	M     int64  `json:"m,omitempty"`
	K     int64  `json:"k,omitempty"`
	N     int64  `json:"n,omitempty"`
	Name  string `json:"name,omitempty"`
	Batch int64  `json:"batch,omitempty"`
	DType string `json:"dtype"`
	TF32  bool   `json:"tf32"`
}

// peers is a process of Python with PyTorch, which keeps what it has compiled.
type peers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// peer asks for seconds; the process is started by the first question.
func (b *bench) peer(ctx context.Context, q question) (float64, error) {
	if b.peers == nil {
		p, err := startPeers(b.python)
		if err != nil {
			return 0, err
		}
		b.peers = p
	}
	stop := context.AfterFunc(ctx, func() { _ = b.peers.cmd.Process.Kill() })
	defer stop()
	seconds, err := b.peers.ask(q)
	var refused *refusal
	if err != nil && !errors.As(err, &refused) {
		b.peers.close()
		b.peers = nil
	}
	return seconds, err
}

func startPeers(python string) (*peers, error) {
	cmd := exec.Command(python, "-u", "-c", peersProgram)
	cmd.Stderr, cmd.WaitDelay = os.Stderr, time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting PyTorch: %w", err)
	}
	return &peers{cmd, in, bufio.NewScanner(out)}, nil
}

// refusal is an answer without seconds.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

func (p *peers) ask(q question) (float64, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, fmt.Errorf("PyTorch has ended: %w", err)
	}
	for p.out.Scan() {
		var answer struct {
			Seconds float64 `json:"seconds"`
			Error   string  `json:"error"`
		}
		// Libraries print lines of their own.
		if json.Unmarshal(p.out.Bytes(), &answer) != nil || answer.Seconds == 0 && answer.Error == "" {
			continue
		}
		if answer.Error != "" {
			return 0, &refusal{answer.Error}
		}
		return answer.Seconds, nil
	}
	return 0, errors.New("PyTorch has ended")
}

func (p *peers) close() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
