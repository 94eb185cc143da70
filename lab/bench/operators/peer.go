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

// peer is a library that runs in a process of its own, and takes turns with ours. scripts/peers.sh builds the programs
// from peer/src. They introduce themselves ("peer oneDNN 3.12.1"), then answer each line with one line:
//
//	prepare convolution ELEMENT BATCH ROWS COLUMNS IN OUT KERNEL STRIDE PADDING DILATION GROUPS
//	prepare product ELEMENT ROWS COLUMNS DEPTH
//	    ready IMPLEMENTATION, or unsupported WHY
//	time SECONDS
//	    samples S1 S2 ..., in seconds
type peer struct {
	// Name is the library's, with its version.
	Name    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// unsupported is why a library does not compute a question.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// longestAnswer bounds an answer; one with 200 samples takes a few thousand bytes.
const longestAnswer = 1 << 16

// startPeer starts the program of a library, which then uses as many threads. Who starts it closes it; a context
// that ends ends it as well.
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

// prepare asks for an operator, which time times from then on. The error is unsupported where the library has none.
func (p *peer) prepare(question string) (implementation string, err error) {
	return p.ask("prepare "+question, "ready")
}

// time is the seconds that the prepared operator takes, in samples taken for about as long.
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

// answer is what follows the word that is wanted.
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

// close ends the process, whatever it does.
func (p *peer) close() error {
	err := errors.Join(p.in.Close(), p.process.Process.Kill())
	var killed *exec.ExitError
	if ended := p.process.Wait(); !errors.As(ended, &killed) {
		err = errors.Join(err, ended)
	}
	return err
}
