package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/farm"
)

// Where a tracker is found unless said otherwise.
const (
	defaultTracker = "127.0.0.1:9190"
	defaultHTTP    = "127.0.0.1:9191"
)

func newTracker(a *app) *cobra.Command {
	var listen, web, data string
	var insecure bool
	var log logFlag
	c := &cobra.Command{
		Use: "tracker", Short: "Run the tracker: the holder of jobs, leases, artifacts and records",
		Example: `  tilth tracker --data /var/lib/tilth
  tilth tracker --listen unix:/run/tilth.sock --http ""`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&listen, "listen", defaultTracker, "address to serve gRPC on: `host:port` or unix:PATH")
	c.Flags().StringVar(&web, "http", defaultHTTP, "`address` to serve metrics, health and status on; empty = nowhere")
	c.Flags().StringVar(&data, "data", "", "`folder` of records and artifacts (default $XDG_DATA_HOME/tilth/tracker)")
	c.Flags().BoolVar(&insecure, "insecure", false, "serve others than this machine, without encryption or passwords: whoever reaches it runs code on the farm")
	log.add(c, slog.LevelInfo)
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		if listen == "" {
			return usagef("--listen is empty: want host:port or unix:PATH")
		}
		for _, addr := range []string{listen, web} {
			if err := checkListen(addr, insecure); err != nil {
				return err
			}
		}
		dir, err := orDefault(data, "tracker")
		if err != nil {
			return err
		}
		logger := log.logger(a.stderr)
		return farm.RunTracker(ctx, farm.TrackerConfig{
			Records: filepath.Join(dir, "tilth.db"), ArtifactsDir: filepath.Join(dir, "artifacts"),
			Listen: listen, HTTP: web, Logger: logger,
			Ready: func(rpc, web net.Addr) { logger.Info("tracker serves", "grpc", rpc, "http", web, "data", dir) },
		})
	})
}

// orDefault is the folder asked for, or one in the user's data.
func orDefault(dir, name string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base, err := dataDir()
	return filepath.Join(base, name), err
}

// checkListen keeps a tracker from being open to others by mistake.
func checkListen(addr string, insecure bool) error {
	if addr == "" || strings.HasPrefix(addr, "unix:") {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usagef("address %q is not host:port or unix:PATH", addr)
	}
	if ip := net.ParseIP(host); insecure || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %s can be reached by others, who could run code on the farm: listen on 127.0.0.1 and tunnel, or say --insecure", addr)
}
