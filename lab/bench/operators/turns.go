package operators

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tilth-dev/tilth/internal/stats"
	"github.com/tilth-dev/tilth/lab/bench"
)

const (
	// rounds is the number of turns of a library and a kernel.
	rounds = 5
	// peerTime is the duration of a library's turn.
	peerTime = 100 * time.Millisecond
)

// against is a library's time for a workload, measured in turns with the default schedule.
type against struct {
	Library        string `json:"library"`
	Implementation string `json:"implementation"`
	// Seconds and OurSeconds are medians over the turns.
	Seconds    float64 `json:"seconds"`
	OurSeconds float64 `json:"our_seconds"`
	// Ratio is the median over the rounds of the library's time divided by the kernel's. Low and High are the
	// quartiles.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// libraries starts the library programs in a folder.
func libraries(ctx context.Context, folder string, threads int) (list []peer, err error) {
	for _, program := range [][]string{{"onednn"}, {"ggml", filepath.Join(folder, "ggml-backends")}} {
		p, err := startPeer(ctx, threads, filepath.Join(folder, program[0]), program[1:]...)
		if err != nil {
			return nil, errors.Join(err, closeAll(list))
		}
		list = append(list, p)
	}
	return list, nil
}

func closeAll(list []peer) (err error) {
	for _, p := range list {
		err = errors.Join(err, p.Close())
	}
	return err
}

// compare compares the kernel of a task with each library that supports its operator.
func (b *suite) compare(ctx context.Context, t *task) (list []against, err error) {
	if t.question == "" || t.seconds == 0 {
		return nil, nil
	}
	for _, p := range b.peers {
		by, err := p.prepare(t.question)
		if errors.As(err, new(unsupported)) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.title(), err)
		}
		one := against{Library: p.Name, Implementation: by}
		if err := b.turns(ctx, t, p, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", t.title(), err)
		}
		list = append(list, one)
	}
	return list, nil
}

// turns times a kernel and a library's prepared operator in turns.
func (b *suite) turns(ctx context.Context, t *task, p peer, a *against) error {
	var ours, theirs [][]float64
	for range rounds {
		if err := b.time(ctx, t); err != nil {
			return err
		}
		samples, err := p.time(peerTime)
		if err != nil {
			return err
		}
		if t.seconds == 0 {
			return errors.New("the kernel was measured before, and fails now")
		}
		ours, theirs = append(ours, []float64{t.seconds}), append(theirs, []float64{stats.Of(samples).Median})
	}
	c := bench.Compare(ours, theirs)
	a.OurSeconds, a.Seconds, a.Low, a.Ratio, a.High = c.Seconds, c.PeerSeconds, c.Low, c.Ratio, c.High
	return nil
}
