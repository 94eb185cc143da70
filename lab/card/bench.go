package card

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is the state that all steps share.
type bench struct {
	options
	// card is the name of the GPU and its driver.
	card   string
	ledger *ledger
	peers  *peers
}

func (b *bench) close() {
	if b.peers != nil {
		b.peers.close()
	}
}

// path returns the path of a file in the working folder.
func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// call runs the program and returns its output. The error includes the end of its standard error.
func (b *bench) call(ctx context.Context, args ...string) ([]byte, error) {
	return execute(ctx, b.tilth, args...)
}

// ask runs the program and decodes its JSON output.
func (b *bench) ask(ctx context.Context, into any, args ...string) error {
	out, err := b.call(ctx, append(args, "--json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// complaintBytes bounds the part of standard error in an error.
const complaintBytes = 1000

// execute runs a program and returns its output.
func execute(ctx context.Context, name string, args ...string) ([]byte, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr, cmd.WaitDelay = &complaint, time.Second
	out, err := cmd.Output()
	if err != nil {
		said := strings.TrimSpace(complaint.String())
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, said[max(0, len(said)-complaintBytes):])
	}
	return out, nil
}

// exitStatus returns the exit status of a failed program, or -1.
func exitStatus(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return -1
	}
	return exit.ExitCode()
}

// describeCard returns the first GPU's name and driver.
func describeCard(ctx context.Context) (string, error) {
	out, err := execute(ctx, "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0")
	if err != nil {
		return "", fmt.Errorf("this wants a machine with an NVIDIA GPU: %w", err)
	}
	name, driver, ok := strings.Cut(strings.TrimSpace(string(out)), ", ")
	if !ok {
		return "", errors.New("nvidia-smi does not say which GPU there is")
	}
	return fmt.Sprintf("%s, driver %s", name, driver), nil
}

// sorted returns the sorted keys of a map.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// median returns the median of values.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
