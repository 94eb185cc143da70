package simulate

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"

	"github.com/tilth-dev/tilth/access/connlimit"
	"github.com/tilth-dev/tilth/farm"
)

// Where a tracker keeps its data below its folder.
const (
	recordsName   = "tilth.db"
	artifactsName = "artifacts"
)

// mostConnections come from one host here, as they do not in a farm.
const mostConnections = 1 << 20

// addresses is the line in which a tracker tells where it is found.
type addresses struct {
	GRPC string `json:"grpc"`
	HTTP string `json:"http"`
}

// ServeTracker is the tracker's process: it serves a tracker over the data in dir at listen, and its pages at web
// (each host:port; port 0 = any). It writes a line with its addresses to out, and stops when in ends, so that it does
// not outlive who started it.
func ServeTracker(ctx context.Context, dir, listen, web string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return farm.RunTracker(ctx, farm.TrackerConfig{
		Records: filepath.Join(dir, recordsName), ArtifactsDir: filepath.Join(dir, artifactsName),
		Listen: listen, HTTP: web, Security: farm.Security{Limits: connlimit.Limits{Connections: mostConnections, PerHost: mostConnections}},
		Keep: farm.KeepAll(), // what is dropped cannot be told from what is lost
		Ready: func(rpc, web net.Addr) {
			_ = json.NewEncoder(out).Encode(addresses{GRPC: rpc.String(), HTTP: web.String()}) // who cannot read it stops the process
		},
	})
}
