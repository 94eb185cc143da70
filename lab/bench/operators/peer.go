package operators

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

// peer is a library in a separate process that takes turns with our kernels. scripts/peers.sh builds the programs
// from peer/src. They print a greeting ("peer oneDNN 3.12.1") and answer each line with one line:
//
//	prepare convolution ELEMENT BATCH ROWS COLUMNS IN OUT KERNEL STRIDE PADDING DILATION GROUPS
//	prepare product ELEMENT ROWS COLUMNS DEPTH
//	    ready IMPLEMENTATION, or unsupported WHY
//	time SECONDS
//	    samples S1 S2 ..., in seconds
type peer struct {
	// Name is the library's name and version.
	Name    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// unsupported is the reason why a library cannot run an operator.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// longestAnswer is the maximum length of an answer. One with 200 samples takes a few thousand bytes.
const longestAnswer = 1 << 16

// startPeer starts the program of a library on a number of threads. The caller must close it. The end of ctx also
// ends it.
func startPeer(ctx context.Context, threads int, program string, args ...string) (*peer, error) {
	p := &peer{process: exec.CommandContext(ctx, program, args...)}
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
	p.out.Buffer(nil, longestAnswer)
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start a library to compare with: %w: 'scripts/peers.sh' builds its program", err)
	}
	if p.Name, err = p.answer("peer"); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), p.close())
	}
	return p, nil
}

// prepare prepares the operator that time times. The error is an unsupported if the library lacks the operator.
func (p *peer) prepare(question string) (implementation string, err error) {
	return p.ask("prepare "+question, "ready")
}

// time runs the prepared operator for about d and returns samples in seconds.
func (p *peer) time(d time.Duration) (samples []float64, err error) {
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

func (p *peer) ask(line, want string) (string, error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return "", fmt.Errorf("ask %s: %w", p.Name, err)
	}
	text, err := p.answer(want)
	if err != nil {
		return "", fmt.Errorf("ask %s to %s: %w", p.Name, line, err)
	}
	return text, nil
}

// answer returns the rest of an answer that starts with the wanted word.
func (p *peer) answer(want string) (string, error) {
	if !p.out.Scan() {
		return "", errors.Join(errors.New("it ended without an answer"), p.out.Err())
	}
	word, text, _ := strings.Cut(p.out.Text(), " ")
	switch word {
	case want:
		return text, nil
	case "unsupported":
		return "", unsupported(text)
	}
	return "", fmt.Errorf("it answers %q", p.out.Text())
}

// close ends the process.
func (p *peer) close() error {
	err := errors.Join(p.in.Close(), p.process.Process.Kill())
	var killed *exec.ExitError
	if ended := p.process.Wait(); !errors.As(ended, &killed) {
		err = errors.Join(err, ended)
	}
	return err
}
