package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

const (
	// asking bounds how long describing cards may take: a driver that was not used for a while takes seconds.
	asking = time.Minute
	// slice begins the UUIDs of parts that a card is cut into (MIG).
	slice = "MIG-"
)

// choice is one of this machine's cards: by its number among those that the driver shows, by its UUID or the beginning
// of it, as CUDA_VISIBLE_DEVICES takes them, or the first. Its ID is the UUID, so that it stays the same card whatever
// else the driver shows later.
func choice(host *target.Target, device string) (*target.GPU, error) {
	cards, err := describe(host, os.Getenv(VisibleVariable))
	if err != nil {
		return nil, err
	}
	found, err := pick(cards, device)
	if err == nil || !strings.HasPrefix(device, slice) || os.Getenv(VisibleVariable) != "" {
		return found, err
	}
	// Without that variable the driver shows one slice at most.
	if cards, hidden := describe(host, device); hidden == nil && len(cards) > 0 {
		return &cards[0], nil
	}
	return nil, err
}

// pick finds a card among those that the driver shows.
func pick(cards []target.GPU, device string) (*target.GPU, error) {
	if len(cards) == 0 {
		return nil, errors.New("the driver shows none; " + VisibleVariable + " may hide them")
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
	return nil, fmt.Errorf("there is no GPU %s among those that the driver shows: %s", device, strings.Join(ids, ", "))
}

// describe has the driver describe the cards that it shows, where visible says which, or all.
func describe(host *target.Target, visible string) ([]target.GPU, error) {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	tc, err := toolchain.Find(ctx, os.Getenv(toolchain.Variable))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tilth-describe-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	text, err := ask(ctx, question{tc: tc, host: host, dir: dir, parts: []string{"describe.c"}, visible: visible})
	if err != nil {
		return nil, err
	}
	return described(text)
}

// numbers is how many the program tells of a card.
const numbers = 10

// described reads what the program says.
func described(text string) (cards []target.GPU, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] == "" {
		return nil, nil
	}
	if len(lines)%(2+numbers) != 0 {
		return nil, fmt.Errorf("the driver says %d things of its cards, which are no multiple of %d", len(lines), 2+numbers)
	}
	for ; len(lines) > 0; lines = lines[2+numbers:] {
		var n [numbers]int
		for k := range n {
			if n[k], err = strconv.Atoi(lines[2+k]); err != nil {
				return nil, fmt.Errorf("the driver says %q instead of a number", lines[2+k])
			}
		}
		cards = append(cards, target.GPU{
			ID: lines[0], Arch: archOf(n[0], n[1]), Model: lines[1], Multiprocessors: n[2], WarpThreads: n[3], BlockThreads: n[4], MultiprocessorThreads: n[5],
			ThreadRegisters: threadRegisters, MultiprocessorRegisters: n[6], BlockSharedBytes: int64(n[7]), MultiprocessorSharedBytes: int64(n[8]), L2Bytes: int64(n[9]),
		})
	}
	return cards, nil
}
