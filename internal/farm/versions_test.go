package farm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/tracker"
)

// TestTrackerKeepsItsShardsWhenAnotherIsOfALaterVersion checks a tracker that discovers an incompatible schema
// during a takeover. It continues with its shards. Without shards it exits with an explanation.
func TestTrackerKeepsItsShardsWhenAnotherIsOfALaterVersion(t *testing.T) {
	host := tracker.NewHost(tracker.HostConfig{Shards: 2, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	store, err := bolt.OpenMemory(bolt.Options{Generation: records.NewGenerationOf(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	held, err := tracker.New(tracker.Config{Store: store, ArtifactsDir: t.TempDir(), Shard: tracker.Shard{Index: 0, Count: 2}})
	if err != nil {
		t.Fatal(err)
	}
	host.Add(held, prometheus.NewRegistry())
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s := &shardsServed{host: host, cfg: TrackerConfig{Shards: 2, Tracker: tracker.Config{Logger: slog.New(slog.DiscardHandler)}}, kind: StoreKind{
			Shard: func(context.Context, string, StoreShard) (records.Store, error) {
				if tries++; tries == 5 {
					host.Remove(held)
				}
				return nil, fmt.Errorf("schema 8: %w", records.ErrVersion)
			},
		}}
		s.began.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := s.serve(ctx, 1); !errors.Is(err, records.ErrVersion) || tries != 5 {
			t.Errorf("after %d tries it came to %v", tries, err)
		}
	})
}

// versioned is a store with a given schema version.
type versioned struct {
	records.Store
	schema, own int
}

func (v versioned) Schema() (schema, own int) { return v.schema, v.own }

func TestLaterVersionIsSaidOnce(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	var v versions
	store, err := bolt.OpenMemory(bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v.tell(log, store)
	v.tell(log, versioned{schema: 6, own: 6})
	if said.Len() > 0 {
		t.Errorf("of a schema of this version it says %s", &said)
	}
	for range 3 {
		v.tell(log, versioned{schema: 7, own: 6})
	}
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=INFO") || !strings.Contains(text, "schema=7 own=6") {
		t.Errorf("it says %q", text)
	}
}
