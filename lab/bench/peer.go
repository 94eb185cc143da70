package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Peer is a program in a process of its own that stays ready between its turns. It answers each line with one line.
type Peer struct {
	// Name identifies the peer in errors.
	Name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

const (
	// maxAnswer bounds the size of an answer in bytes.
	maxAnswer = 4 << 20
	// closeTimeout is how long a peer may continue after the end of its input.
	closeTimeout = 5 * time.Second
)

// Start starts the process of a peer. The caller must close it.
func Start(name string, cmd *exec.Cmd) (*Peer, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Peer{Name: name, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	p.out.Buffer(nil, maxAnswer)
	return p, nil
}

// PID returns the number of the process.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// Read returns the next line of the peer.
func (p *Peer) Read() (string, error) {
	if !p.out.Scan() {
		return "", errors.Join(fmt.Errorf("%s: it ended without an answer", p.Name), p.out.Err())
	}
	return p.out.Text(), nil
}

// Ask returns the answer to a line.
func (p *Peer) Ask(question string) (answer string, err error) {
	if _, err = fmt.Fprintln(p.in, question); err == nil {
		answer, err = p.Read()
	}
	if err != nil {
		return "", fmt.Errorf("ask %s to %s: %w", p.Name, question, err)
	}
	return answer, nil
}

// AskJSON decodes the answer to a line.
func (p *Peer) AskJSON(question string, answer any) error {
	line, err := p.Ask(question)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(line), answer); err != nil {
		return fmt.Errorf("ask %s to %s: it said %.100q: %w", p.Name, question, line, err)
	}
	return nil
}

// Kill kills the process. The peer must still be closed.
func (p *Peer) Kill() { _ = p.cmd.Process.Kill() }

// Close ends the input of the peer, which ends its process, and returns the error of the process.
func (p *Peer) Close() error {
	_ = p.in.Close() // it may have ended
	kill := time.AfterFunc(closeTimeout, p.Kill)
	defer kill.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}
