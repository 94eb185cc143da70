package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/farm"
	"github.com/tilth-dev/tilth/internal/disk"
)

// Where a tracker is found unless said otherwise.
const (
	defaultTracker = "127.0.0.1:9190"
	defaultHTTP    = "127.0.0.1:9191"
)

func newTracker(a *app) *cobra.Command {
	var listen, web, data string
	var security securityFlags
	var share shareFlags
	var artifacts artifactFlags
	var backups backupFlags
	var kept keepFlags
	var patience patienceFlags
	var log logFlag
	var drift driftFlags
	c := &cobra.Command{
		Use: "tracker", Short: "Run the tracker: the holder of jobs, leases, artifacts and records",
		Long: `Run the tracker: the holder of jobs, leases, artifacts and records.

It serves this machine only, unless it has a certificate and asks who calls
(--tls-cert, --tls-key, and --tokens, --tls-client-ca or both): see
'tilth tracker certs' and 'tilth tracker token'.`,
		Example: `  tilth tracker
  tilth tracker --data ~/farm --listen unix:/tmp/tilth.sock --http ""
  tilth tracker --config tracker.yaml --config-check
  tilth tracker --listen :9190 --tls-cert tracker.crt --tls-key tracker.key --tokens tokens.json`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&listen, "listen", defaultTracker, "address to serve gRPC on: `host:port` or unix:PATH")
	c.Flags().StringVar(&web, "http", defaultHTTP, "`address` to serve metrics, health and status on; empty = nowhere")
	c.Flags().StringVar(&data, "data", "", "`folder` of records and artifacts (default $XDG_DATA_HOME/tilth/tracker)")
	drift.add(c)
	patience.add(c)
	share.add(c)
	kept.add(c)
	artifacts.add(c)
	backups.add(c)
	security.add(c)
	log.add(c, slog.LevelInfo)
	c.AddCommand(newTrackerCerts(a), newTrackerToken(a), newTrackerBackup(a), newTrackerRestore(a), newTrackerVerify(a))
	check := func() error {
		if listen == "" {
			return usagef("--listen is empty: want host:port or unix:PATH")
		}
		if _, err := share.shares(); err != nil {
			return err
		}
		if _, err := kept.keep(); err != nil {
			return err
		}
		if err := artifacts.check(); err != nil {
			return err
		}
		if err := backups.check(); err != nil {
			return err
		}
		if err := drift.check(); err != nil {
			return err
		}
		if err := patience.check(); err != nil {
			return err
		}
		return security.check(listen, web)
	}
	return a.service(c, check, func(ctx context.Context) error {
		shares, err := share.shares()
		if err != nil {
			return err
		}
		keep, err := kept.keep()
		if err != nil {
			return err
		}
		dir, err := orDefault(data, "tracker")
		if err != nil {
			return err
		}
		// What is in it is not for everybody on this machine; a folder that is there already keeps its mode.
		if err := disk.MakeFolder(dir, 0o700); err != nil {
			return fmt.Errorf("tracker: %w: name another folder with --data", err)
		}
		logger := log.logger(a.stderr)
		return farm.RunTracker(ctx, farm.TrackerConfig{
			Records: filepath.Join(dir, recordsName), ArtifactsDir: filepath.Join(dir, "artifacts"),
			Listen: listen, HTTP: web, Patience: patience.patience(), Shares: shares, Keep: keep, Logger: logger, Security: security.config(a, dir),
			Drift: drift.policy, Artifacts: artifacts.options(), Backups: backups.policy,
			Ready: func(rpc, web net.Addr) {
				logger.Info("tracker serves", "grpc", rpc, "http", web, "data", dir, "tls", security.cert != "", "callers", security.callers())
			},
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
