package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/tracker"
)

// Default addresses of a tracker.
const (
	defaultTracker = "127.0.0.1:9190"
	defaultHTTP    = "127.0.0.1:9191"
)

// serveFlags configures a tracker.
type serveFlags struct {
	listen, web, data string
	store             string
	shards            int
	advertise         string
	releases          string
	security          securityFlags
	share             shareFlags
	artifacts         artifactFlags
	backups           backupFlags
	kept              keepFlags
	patience          patienceFlags
	drift             driftFlags
	log               logFlag
}

const trackerLong = `Run the tracker, which holds jobs, leases, artifacts and records.

It only serves this machine, unless it has a certificate and authenticates callers
(--tls-cert, --tls-key, and --tokens, --oidc or --tls-client-ca): see docs/security.md.`

const trackerDetails = `'tilth tracker certs' makes certificates, and 'tilth tracker token' tokens.

Jobs and records are stored in a file of --data, or in the database of --store, whose
password comes from PGPASSFILE (~/.pgpass) or PGPASSWORD. One tracker at a time holds a
database; the others stand by, and one of them takes over within five seconds of a
failure. With --shards, several trackers serve a database together. Artifacts are stored
in --data, or in the object store of --artifacts, which the trackers of a database
share. Its credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
~/.aws/credentials or the machine's role.

For example, a tracker on a database and an object store, and one with an OpenID Connect
issuer:

  tilth tracker --store postgres://tilth@db/tilth \
    --artifacts 's3://tilth/farm1?region=eu-central-1'
  tilth tracker --listen :9190 --tls-cert tracker.crt --tls-key tracker.key \
    --oidc issuer=https://sso.example.com,audience=tilth \
    --oidc-role ml-team=client`

func newTracker(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "tracker", Short: "Run the tracker, which holds jobs, leases, artifacts and records",
		Long: trackerLong,
		Example: `  tilth tracker --data ~/farm
  tilth tracker --store postgres://tilth@db.example.com/tilth
  tilth tracker --listen :9190 --tls-cert tracker.crt --tls-key tracker.key --tokens tokens.json`,
		Annotations: map[string]string{helpDetails: trackerDetails},
	}
	var f serveFlags
	f.add(c)
	c.AddCommand(newTrackerCerts(a), branch("token", "Create, list and revoke the tokens of callers", newTokenCreate(a), newTokenList(a), newTokenRevoke(a)),
		newTrackerBackup(a), newTrackerRestore(a), newTrackerVerify(a), newTrackerConvert(a))
	return a.service(c, f.check, func(ctx context.Context) error { return f.run(ctx, a) })
}

func (f *serveFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.listen, "listen", defaultTracker, "address to serve gRPC on: `host:port` or unix:PATH")
	c.Flags().StringVar(&f.web, "http", defaultHTTP, "`address` to serve metrics, health and status on; empty = nowhere")
	c.Flags().StringVar(&f.data, "data", "", "`folder` of records and artifacts (default $XDG_DATA_HOME/tilth/tracker)")
	c.Flags().StringVar(&f.store, "store", farm.StoreKinds()[0].Name, "`kind` or address of the store for jobs and records: "+farm.StoreHelp())
	c.Flags().IntVar(&f.shards, "shards", 1, "how many `shards` the database of --store has, for trackers that serve side by side; see docs/scale.md")
	c.Flags().StringVar(&f.advertise, "advertise", "", "`address` at which trackers of other shards reach this one (default: --listen, with the host by which it reaches the database)")
	c.Flags().StringVar(&f.releases, "releases", "", "`folder` of a release, as 'make dist' makes it, that agents with --update-key may take")
	f.drift.add(c)
	f.patience.add(c)
	f.share.add(c)
	f.kept.add(c)
	f.artifacts.add(c)
	f.backups.add(c)
	f.security.add(c)
	f.log.add(c, slog.LevelInfo)
}

// check rejects invalid values.
func (f *serveFlags) check() error {
	if f.listen == "" {
		return usagef("--listen is empty: want host:port or unix:PATH")
	}
	if _, err := farm.StoreKindOf(f.store); err != nil {
		return usagef("--store: %v", err)
	}
	if f.shards < 1 || f.shards > wire.MaxShards {
		return usagef("--shards is %d: want 1 to %d", f.shards, wire.MaxShards)
	}
	if kind, _ := farm.StoreKindOf(f.store); f.shards > 1 && kind.Shard == nil {
		return usagef("--shards is %d: only a database has shards, and --store names none", f.shards)
	}
	if f.advertise != "" {
		if err := wire.CheckAddress(f.advertise); err != nil {
			return usagef("--advertise: %v", err)
		}
		if f.shards == 1 {
			return usagef("--advertise %s: it is for trackers that serve side by side: give --shards too", f.advertise)
		}
	}
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS" + signing.Suffix} {
		if _, err := os.Stat(filepath.Join(f.releases, name)); f.releases != "" && err != nil {
			return usagef("--releases: %v: want a folder that 'make dist KEY=...' made", err)
		}
	}
	if _, err := f.share.shares(); err != nil {
		return err
	}
	if _, err := f.kept.keep(); err != nil {
		return err
	}
	for _, check := range []func() error{f.artifacts.check, f.backups.check, f.drift.check, f.patience.check} {
		if err := check(); err != nil {
			return err
		}
	}
	return f.security.check(f.listen, f.web)
}

func (f *serveFlags) run(ctx context.Context, a *app) error {
	shares, err := f.share.shares()
	if err != nil {
		return err
	}
	keep, err := f.kept.keep()
	if err != nil {
		return err
	}
	dir, err := orDefault(f.data, "tracker")
	if err != nil {
		return err
	}
	// The data are private; an existing folder keeps its mode.
	if err := filesystem.MakeFolder(dir, 0o700); err != nil {
		return fmt.Errorf("tracker: %w: name another folder with --data", err)
	}
	security, err := f.security.config(a, dir)
	if err != nil {
		return err
	}
	logger := f.log.logger(a.stderr)
	if security.Limits, err = farm.FitDescriptors(security.Limits, logger); err != nil {
		return fmt.Errorf("tracker: %w", err)
	}
	return farm.RunTracker(ctx, farm.TrackerConfig{
		Build: farm.Build{Version: version, Commit: thisBuild().Commit},
		Store: f.store, Shards: f.shards, Records: filepath.Join(dir, recordsName), ObjectStore: f.artifacts.address,
		Listen: f.listen, Advertise: f.advertise, HTTP: f.web, Security: security,
		Tracker: tracker.Config{
			ArtifactsDir: filepath.Join(dir, "artifacts"), ReleasesDir: f.releases, Logger: logger,
			LeaseTimeout: f.patience.lease, Grace: f.patience.grace, OutageWait: f.patience.outage, SearchTurn: f.patience.turn, MaxAttempts: uint32(f.patience.attempts),
			Shares: shares, Keep: keep, Drift: f.drift.policy, Artifacts: f.artifacts.options(), Backups: f.backups.policy,
		},
		Ready: func(rpc, web net.Addr) {
			logger.Info("tracker serves", "grpc", rpc, "http", web, "data", dir, "tls", f.security.cert != "",
				"callers", f.security.callers())
		},
	})
}

// orDefault returns the given folder, or one in the user's data.
func orDefault(dir, name string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base, err := dataDir()
	return filepath.Join(base, name), err
}
