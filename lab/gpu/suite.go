package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/lab/bench"
)

// suite is the state that all steps share.
type suite struct {
	options
	// card is the name of the GPU and its driver.
	card   string
	ledger *ledger
	peers  *bench.Peer
}

func (b *suite) close() {
	if b.peers != nil {
		b.peers.Kill()
		_ = b.peers.Close() // it was killed
		b.peers = nil
	}
}

// path returns the path of a file in the working folder.
func (b *suite) path(name string) string { return filepath.Join(b.work, name) }

// call runs the program and returns its output. The error includes the end of its standard error.
func (b *suite) call(ctx context.Context, args ...string) ([]byte, error) {
	return bench.Output(ctx, b.tilth, args...)
}

// ask runs the program and decodes its JSON output.
func (b *suite) ask(ctx context.Context, into any, args ...string) error {
	out, err := b.call(ctx, append(args, "--json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

// describeCard returns the first GPU's name and driver.
func describeCard(ctx context.Context) (string, error) {
	out, err := bench.Output(ctx, "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0")
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
