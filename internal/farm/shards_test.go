package farm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// lonely is a member list that becomes unavailable once another member was met.
type lonely struct{ met bool }

func (l *lonely) Heartbeat(context.Context, records.Member) ([]records.Member, error) {
	if !l.met {
		l.met = true
		return []records.Member{{}}, nil
	}
	return nil, errors.New("the database is unavailable")
}

func (l *lonely) Leave() {}

// TestTrackerWithoutPeersKeepsItsShards is a regression test: a tracker with all shards of a failed peer released one
// every few seconds while the members were unavailable.
func TestTrackerWithoutPeersKeepsItsShards(t *testing.T) {
	const shards = 2
	host := tracker.NewHost(tracker.HostConfig{Shards: shards, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	s := &shardsServed{cfg: TrackerConfig{Shards: shards, Tracker: tracker.Config{Logger: slog.New(slog.DiscardHandler)}}, host: host}
	var err error
	if s.others, err = newOthers(tracker.Security{}); err != nil {
		t.Fatal(err)
	}
	defer s.others.Close()
	for shard := range shards {
		store, err := bolt.OpenMemory(bolt.Options{Generation: records.NewGenerationOf(shard)})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		one, err := tracker.New(tracker.Config{Store: store, ArtifactsDir: t.TempDir(), Shard: tracker.Shard{Index: shard, Count: shards}})
		if err != nil {
			t.Fatal(err)
		}
		host.Add(one, prometheus.NewRegistry())
		s.giveUp = append(s.giveUp, make(chan struct{}, 1))
	}
	s.began.Store(true)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*giveUpAfter*countEvery+time.Millisecond)
		defer cancel()
		s.balance(ctx, &lonely{}, "unix:/run/tilth")
	})
	for shard, given := range s.giveUp {
		if len(given) > 0 {
			t.Errorf("shard %d is given up", shard)
		}
	}
}

// TestDamagedShardsAreRetriedWithBackoff is a regression test: a damaged shard was opened and read in full every
// second. A shard is still retried that often while the database is unavailable.
func TestDamagedShardsAreRetriedWithBackoff(t *testing.T) {
	host := tracker.NewHost(tracker.HostConfig{Shards: 2, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	for name, c := range map[string]struct {
		why      error
		min, max int // attempts in an hour
	}{
		"damaged": {fmt.Errorf("a row: %w", records.ErrDamaged), 60, 70},
		"away":    {errors.New("connection refused"), 3600, 3601},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				s := &shardsServed{host: host, cfg: TrackerConfig{Shards: 2, Tracker: tracker.Config{Logger: slog.New(slog.DiscardHandler)}}, kind: StoreKind{
					Shard: func(context.Context, string, StoreShard) (records.Store, error) {
						tries++
						return nil, c.why
					},
				}}
				s.began.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := s.serve(ctx, 0); err != nil {
					t.Error(err)
				}
				if tries < c.min || tries > c.max {
					t.Errorf("it is tried %d times", tries)
				}
			})
		})
	}
}
