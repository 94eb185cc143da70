package farm

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
)

// lines collects the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// TestLocalFarmSaysOnceWhyItFails is a regression test: if records could not be written, the log repeated the error
// twice and reported that agents lost the tracker.
func TestLocalFarmSaysOnceWhyItFails(t *testing.T) {
	var log lines
	cfg := config(t)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	l, err := StartLocal(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	bound, release := l.Bound(ctx)
	defer release()
	j, err := l.Client.Submit(ctx, spec(t, cfg, LocalOwner, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Client.Watch(bound, &tilthv1.WatchJobRequest{JobId: j.GetId()}, func(e *tilthv1.JobEvent) error { // the context reports the end
		if e.GetTrial() != nil {
			return os.Truncate(cfg.Records, 0)
		}
		return nil
	}, nil)
	<-bound.Done()
	if err := l.Stop(); err == nil || strings.Count(err.Error(), records.ErrDamaged.Error()) != 1 {
		t.Errorf("the farm stopped with %v", err)
	}
	if text := log.text.String(); strings.Contains(text, records.ErrDamaged.Error()) || strings.Contains(text, "trying again") {
		t.Errorf("and the log says\n%s", text)
	}
}
