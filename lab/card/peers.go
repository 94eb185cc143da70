package card

import (
	"bufio"
	"cmp"
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

// question is a request to peers: the seconds of a product or a model, or readiness.
type question struct {
	What  string `json:"what"`
	Ready bool   `json:"ready,omitempty"`
	M     int64  `json:"m,omitempty"`
	K     int64  `json:"k,omitempty"`
	N     int64  `json:"n,omitempty"`
	Name  string `json:"name,omitempty"`
	Batch int64  `json:"batch,omitempty"`
	DType string `json:"dtype"`
	TF32  bool   `json:"tf32"`
}

// peers is a Python process with PyTorch. It caches its compilations.
type peers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// answer sends a question to the peers and starts their process if necessary.
func (b *bench) answer(ctx context.Context, q question) (reply, error) {
	if b.python == "" {
		return reply{}, errors.New("nothing was to be compared with")
	}
	if b.peers == nil {
		p, err := startPeers(b.python, b.path("peers.log"))
		if err != nil {
			return reply{}, err
		}
		b.peers = p
	}
	p := b.peers
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	said, err := p.ask(q)
	if err != nil {
		p.close()
		b.peers = nil
		return reply{}, err
	}
	return said, said.refusal()
}

// versions returns the versions of the peers, or "".
func (b *bench) versions(ctx context.Context) string {
	said, err := b.answer(ctx, question{What: "versions"})
	if err != nil {
		return ""
	}
	return said.Versions
}

// startPeers starts the peers and writes the verbose output of PyTorch's compiler to a file.
func startPeers(python, log string) (*peers, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	cmd := exec.Command(python, "-u", "-c", peersProgram)
	cmd.Stderr, cmd.WaitDelay = file, time.Second
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

// reply is an answer of the peers.
type reply struct {
	Seconds float64 `json:"seconds"`
	// Way is how the work is submitted: launch by launch, or as a graph.
	Way      string `json:"way"`
	Ready    bool   `json:"ready"`
	Versions string `json:"versions"`
	// Missing is the reason why there are no peers. Error is the reason why a question failed.
	Missing string `json:"missing"`
	Error   string `json:"error"`
}

func (r reply) refusal() error {
	if text := cmp.Or(r.Missing, r.Error); text != "" {
		return errors.New(text)
	}
	return nil
}

func (p *peers) ask(q question) (said reply, err error) {
	line, err := json.Marshal(q)
	if err != nil {
		return said, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return said, fmt.Errorf("PyTorch has ended: %w", err)
	}
	for p.out.Scan() {
		// Libraries may print other lines.
		if json.Unmarshal(p.out.Bytes(), &said) == nil && said != (reply{}) {
			return said, nil
		}
		said = reply{}
	}
	return said, errors.New("PyTorch has ended")
}

func (p *peers) close() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
