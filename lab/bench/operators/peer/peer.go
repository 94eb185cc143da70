package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Peer is a library that runs in a process of its own.
type Peer struct {
	// Name is the library's, with its version.
	Name    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// Unsupported is why a library does not compute a question.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// longest bounds an answer; one with 200 samples takes a few thousand bytes.
const longest = 1 << 16

// Start starts the program of a library, which then uses as many threads. Who starts it closes it; a context that ends
// ends it as well.
func Start(ctx context.Context, threads int, program string, args ...string) (*Peer, error) {
	p := &Peer{process: exec.CommandContext(ctx, program, args...)}
	p.process.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads), "OMP_PROC_BIND=true")
	p.process.Stderr = os.Stderr
	var err error
	if p.in, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, longest)
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start a library to compare with: %w: 'scripts/peers.sh' builds its program", err)
	}
	if p.Name, err = p.answer("peer"); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), p.Close())
	}
	return p, nil
}

// Prepare asks for an operator, which Time times from then on. The error is Unsupported where the library has none.
func (p *Peer) Prepare(question string) (implementation string, err error) {
	return p.ask("prepare "+question, "ready")
}

// Time is the seconds that the prepared operator takes, in samples taken for about as long.
func (p *Peer) Time(d time.Duration) (samples []float64, err error) {
	text, err := p.ask(fmt.Sprintf("time %g", d.Seconds()), "samples")
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Fields(text) {
		s, err := strconv.ParseFloat(field, 64)
		if err != nil || !(s > 0) {
			return nil, fmt.Errorf("%s answers %q for seconds", p.Name, field)
		}
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("%s has taken no samples", p.Name)
	}
	return samples, nil
}

func (p *Peer) ask(line, want string) (string, error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return "", fmt.Errorf("ask %s: %w", p.Name, err)
	}
	text, err := p.answer(want)
	if err != nil {
		return "", fmt.Errorf("ask %s to %s: %w", p.Name, line, err)
	}
	return text, nil
}

// answer is what follows the word that is wanted.
func (p *Peer) answer(want string) (string, error) {
	if !p.out.Scan() {
		return "", errors.Join(errors.New("it ended without an answer"), p.out.Err())
	}
	word, text, _ := strings.Cut(p.out.Text(), " ")
	switch word {
	case want:
		return text, nil
	case "unsupported":
		return "", Unsupported(text)
	}
	return "", fmt.Errorf("it answers %q", p.out.Text())
}

// Close ends the process, whatever it does.
func (p *Peer) Close() error {
	err := errors.Join(p.in.Close(), p.process.Process.Kill())
	var killed *exec.ExitError
	if ended := p.process.Wait(); !errors.As(ended, &killed) {
		err = errors.Join(err, ended)
	}
	return err
}
