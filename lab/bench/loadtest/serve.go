package loadtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/tilth-dev/tilth/internal/access/connlimit"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

// Names of a tracker's files in its folder.
const (
	recordsName   = "tilth.db"
	artifactsName = "artifacts"
)

// maxConnections allows more connections per host than a farm does, because all agents run here.
const maxConnections = 1 << 20

// orders is the configuration of a tracker's process, sent as one line of JSON.
type orders struct {
	Dir    string `json:"dir"`
	Listen string `json:"listen"`
	HTTP   string `json:"http"`
	// Store and Shards describe a database; see farm.TrackerConfig.
	Store  string `json:"store,omitempty"`
	Shards int    `json:"shards,omitempty"`
}

// addresses is the line in which a tracker reports its addresses.
type addresses struct {
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
}

// ServeTracker runs the tracker's process. It reads its orders as a line of JSON from in, serves a tracker, and
// writes a line with its addresses to out. It stops when in closes, so it does not outlive its parent.
func ServeTracker(ctx context.Context, in io.Reader, out io.Writer) error {
	var o orders
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read what is to be served: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return farm.RunTracker(ctx, farm.TrackerConfig{
		Store: o.Store, Shards: o.Shards, Records: filepath.Join(o.Dir, recordsName),
		Listen: o.Listen, HTTP: o.HTTP, Security: farm.Security{Limits: connlimit.Limits{Connections: maxConnections, PerHost: maxConnections}},
		Tracker: tracker.Config{
			ArtifactsDir: filepath.Join(o.Dir, artifactsName), Logger: slog.New(slog.DiscardHandler),
			Keep: policy.Retention{Jobs: -1, Age: -1}, // dropped jobs would look like lost ones
		},
		Ready: func(rpc, web net.Addr) {
			_ = json.NewEncoder(out).Encode(addresses{GRPC: rpc.String(), HTTP: web.String()}) // a parent that fails to read it stops the process
		},
	})
}
