package cuda

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/target"
)

const (
	// slice is the prefix of the UUIDs of MIG devices.
	slice = "MIG-"
)

// choice returns one of this machine's GPUs: by its number among those that the driver shows, by its UUID or a prefix
// of it, as in CUDA_VISIBLE_DEVICES, or the first. Its ID is the UUID, which identifies it regardless of which
// devices the driver shows later.
func choice(host *target.Target, device string) (*target.GPU, error) {
	cards, err := describe(host, os.Getenv(VisibleVariable))
	if err != nil {
		return nil, err
	}
	found, err := pick(cards, device)
	if err == nil || !strings.HasPrefix(device, slice) || os.Getenv(VisibleVariable) != "" {
		return found, err
	}
	// Without that variable the driver shows at most one MIG device.
	if cards, hidden := describe(host, device); hidden == nil && len(cards) > 0 {
		return &cards[0], nil
	}
	return nil, err
}

// pick returns a GPU among those that the driver shows.
func pick(cards []target.GPU, device string) (*target.GPU, error) {
	if len(cards) == 0 {
		return nil, errors.New("no visible device; " + VisibleVariable + " may hide them")
	}
	if device == "" {
		return &cards[0], nil
	}
	n, err := strconv.Atoi(device)
	if err == nil && n >= 0 && n < len(cards) {
		return &cards[n], nil
	}
	var ids []string
	for k := range cards {
		if err != nil && len(device) > len(slice) && strings.HasPrefix(strings.ToLower(cards[k].ID), strings.ToLower(device)) {
			return &cards[k], nil
		}
		ids = append(ids, fmt.Sprintf("%d or %s", k, cards[k].ID))
	}
	return nil, fmt.Errorf("no GPU %s; the driver shows %s", device, strings.Join(ids, ", "))
}

// describe queries the driver for the GPUs that it shows. visible restricts them; empty means all.
func describe(host *target.Target, visible string) ([]target.GPU, error) {
	text, err := query(nil, host, "", visible, "describe.c").AskOnce()
	if err != nil {
		return nil, err
	}
	return described(text)
}

// numbers is how many numbers the program prints per GPU.
const numbers = 10

// described parses the program's output.
func described(text string) (cards []target.GPU, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] == "" {
		return nil, nil
	}
	if len(lines)%(2+numbers) != 0 {
		return nil, fmt.Errorf("driver query returned %d fields, want a multiple of %d", len(lines), 2+numbers)
	}
	for ; len(lines) > 0; lines = lines[2+numbers:] {
		var n [numbers]int
		for k := range n {
			if n[k], err = strconv.Atoi(lines[2+k]); err != nil {
				return nil, fmt.Errorf("driver query returned %q, want a number", lines[2+k])
			}
		}
		cards = append(cards, target.GPU{
			ID: lines[0], Arch: archOf(n[0], n[1]), Model: lines[1], Multiprocessors: n[2], WarpThreads: n[3], BlockThreads: n[4], MultiprocessorThreads: n[5],
			ThreadRegisters: threadRegisters, MultiprocessorRegisters: n[6], BlockSharedBytes: int64(n[7]), MultiprocessorSharedBytes: int64(n[8]), L2Bytes: int64(n[9]),
		})
	}
	return cards, nil
}
