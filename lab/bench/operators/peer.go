package operators

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/lab/bench"
)

// peer is a library in a separate process that takes turns with our kernels. scripts/peers.sh builds the programs
// from peer/src. They print a greeting ("peer oneDNN 3.12.1") and answer each line with one line:
//
//	prepare convolution ELEMENT BATCH ROWS COLUMNS IN OUT KERNEL STRIDE PADDING DILATION GROUPS
//	prepare product ELEMENT ROWS COLUMNS DEPTH
//	    ready IMPLEMENTATION, or unsupported WHY
//	time SECONDS
//	    samples S1 S2 ..., in seconds
type peer struct{ *bench.Peer }

// unsupported is the reason why a library cannot run an operator.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// startPeer starts the program of a library on a number of threads. The caller must close it. The end of ctx also
// ends it.
func startPeer(ctx context.Context, threads int, program string, args ...string) (p peer, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads), "OMP_PROC_BIND=true")
	cmd.Stderr = os.Stderr
	if p.Peer, err = bench.Start(filepath.Base(program), cmd); err != nil {
		return p, fmt.Errorf("%w: 'scripts/peers.sh' builds its program", err)
	}
	greeting, err := p.Read()
	if err == nil {
		greeting, err = parseAnswer(greeting, "peer")
	}
	if err != nil {
		return p, errors.Join(fmt.Errorf("start %s: %w", p.Name, err), p.Close())
	}
	p.Name = greeting // the library's name and version
	return p, nil
}

// prepare prepares the operator that time times. The error is an unsupported if the library lacks the operator.
func (p peer) prepare(question string) (implementation string, err error) {
	return p.ask("prepare "+question, "ready")
}

// time runs the prepared operator for about d and returns samples in seconds.
func (p peer) time(d time.Duration) (samples []float64, err error) {
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

func (p peer) ask(line, want string) (string, error) {
	answer, err := p.Ask(line)
	if err != nil {
		return "", err
	}
	text, err := parseAnswer(answer, want)
	if err != nil {
		return "", fmt.Errorf("ask %s to %s: %w", p.Name, line, err)
	}
	return text, nil
}

// parseAnswer returns the rest of an answer that starts with the wanted word.
func parseAnswer(answer, want string) (string, error) {
	word, text, _ := strings.Cut(answer, " ")
	switch word {
	case want:
		return text, nil
	case "unsupported":
		return "", unsupported(text)
	}
	return "", fmt.Errorf("it answers %q", answer)
}
