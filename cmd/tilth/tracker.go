package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/internal/farm"
	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
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
	shares            policy.Shares // of share, after check
	artifacts         artifactFlags
	backups           backupFlags
	kept              keepFlags
	keep              policy.Retention // of kept, after check
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

// check parses values, and rejects invalid ones.
func (f *serveFlags) check() error {
	if f.listen == "" {
		return usagef("--listen is empty: want host:port or unix:PATH")
	}
	kind, err := farm.StoreKindOf(f.store)
	if err != nil {
		return usagef("--store: %v", err)
	}
	if f.shards < 1 || f.shards > wire.MaxShards {
		return usagef("--shards is %d: want 1 to %d", f.shards, wire.MaxShards)
	}
	if f.shards > 1 && kind.Shard == nil {
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
	if f.shares, err = f.share.shares(); err != nil {
		return err
	}
	if f.keep, err = f.kept.keep(); err != nil {
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
	dir, err := trackerDir(f.data)
	if err != nil {
		return err
	}
	// The data are private; an existing folder keeps its mode.
	if err := filesystem.MakeFolder(dir, 0o700); err != nil {
		return fmt.Errorf("tracker: %w: name another folder with --data", err)
	}
	security := f.security.config(a, dir)
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
			Shares: f.shares, Keep: f.keep, Drift: f.drift.policy, Artifacts: f.artifacts.options(), Backups: f.backups.policy,
		},
		Ready: func(rpc, web net.Addr) {
			logger.Info("tracker serves", "grpc", rpc, "http", web, "data", dir, "tls", f.security.cert != "",
				"callers", f.security.callers())
		},
	})
}

// trackerDir returns the given folder, or that of a tracker in the user's data.
func trackerDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	base, err := dataDir()
	return filepath.Join(base, "tracker"), err
}

// patienceFlags configures timeouts and retries of a tracker.
type patienceFlags struct {
	lease, grace, outage, turn time.Duration
	attempts                   int
}

const (
	// minLease is three heartbeats.
	minLease = 3 * tracker.DefaultHeartbeat
	// maxAttempts bounds --max-attempts.
	maxAttempts = math.MaxInt32 / 16
)

func (f *patienceFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.lease, "lease-timeout", tracker.DefaultLeaseTimeout, "how long an agent may be silent before its work goes to others")
	c.Flags().DurationVar(&f.grace, "grace", tracker.DefaultGrace, "how long an agent may be silent after a restart or a pause of the tracker")
	c.Flags().DurationVar(&f.outage, "outage-wait", tracker.DefaultOutageWait, "how long to wait when most agents fall silent at once")
	c.Flags().DurationVar(&f.turn, "search-turn", tracker.DefaultSearchTurn, "how long a tuner may hold a job while others wait for one")
	c.Flags().IntVar(&f.attempts, "max-attempts", tracker.DefaultMaxAttempts, "failed attempts after which a batch is abandoned")
	atLeast(c, 1, "outage-wait", "search-turn", "max-attempts")
}

func (f *patienceFlags) check() error {
	switch {
	case f.lease < minLease:
		return usagef("--lease-timeout %s: want at least %s, which is three heartbeats", f.lease, minLease)
	case f.grace < f.lease:
		return usagef("--grace %s: want at least the --lease-timeout, %s", f.grace, f.lease)
	case f.attempts > maxAttempts:
		return usagef("--max-attempts %d: want at most %d", f.attempts, maxAttempts)
	}
	return nil
}

// driftFlags configures how calibrations are judged.
type driftFlags struct{ policy policy.Drift }

func (f *driftFlags) add(c *cobra.Command) {
	f.policy = policy.Drift{}.WithDefaults()
	p := &f.policy
	c.Flags().Float64Var(&p.Remeasure, "drift-remeasure", p.Remeasure, "`share` by which a device may change before its measurements since are repeated")
	c.Flags().Float64Var(&p.Quarantine, "drift-quarantine", p.Quarantine, "`share` by which a device may be slower than its reference before it is quarantined")
	c.Flags().Float64Var(&p.Noise, "noise-quarantine", p.Noise, "relative standard `deviation` of a calibration's samples above which a device is quarantined")
	c.Flags().DurationVar(&p.Interval, "calibrate-every", p.Interval, "time between calibrations of an idle device; those of a busy one are up to four times as far apart")
	atLeast(c, 1000, "calibrate-every")
}

func (f *driftFlags) check() error {
	for _, v := range []struct {
		flag  string
		value float64
	}{{"drift-remeasure", f.policy.Remeasure}, {"drift-quarantine", f.policy.Quarantine}, {"noise-quarantine", f.policy.Noise}} {
		if !(v.value > 0) {
			return usagef("--%s %v: want more than 0, such as 0.05", v.flag, v.value)
		}
	}
	return nil
}

// keepFlags configures how long a tracker keeps ended jobs.
type keepFlags struct{ jobs []string }

// keepDefault is the default of --keep-jobs.
var keepDefault = []string{"1000", "2160h"}

func (f *keepFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.jobs, "keep-jobs", keepDefault,
		"ended jobs to keep: a `number` per owner, a time since their end, or both, as in 200,720h; what is left out has no limit. Records stay")
}

// keep parses and validates the flag.
func (f *keepFlags) keep() (policy.Retention, error) {
	keep := policy.Retention{Jobs: -1, Age: -1}
	for _, text := range f.jobs {
		n, notNumber := strconv.Atoi(text)
		age, notTime := humanize.ParseDuration(text)
		switch {
		case notNumber == nil && n > 0 && keep.Jobs < 0:
			keep.Jobs = n
		case notNumber != nil && notTime == nil && age > 0 && keep.Age < 0:
			keep.Age = age
		default:
			return keep, usagef("--keep-jobs %s: want a number of at least 1, a time such as 720h, or one of each", text)
		}
	}
	return keep, nil
}

// backupFlags configures the backups of a tracker's records.
type backupFlags struct{ policy tracker.Backups }

func (f *backupFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.policy.Every, "backup-every", 0, "how often the records file is backed up to --backup-dir (0 = never)")
	c.Flags().StringVar(&f.policy.Dir, "backup-dir", "", "`folder` for backups only, best on another disk; each is verified before it counts")
	c.Flags().IntVar(&f.policy.Keep, "backup-keep", 14, "how many backups are kept (0 = any number)")
	c.Flags().DurationVar(&f.policy.KeepFor, "backup-keep-for", 30*24*time.Hour, "how long a backup is kept; the last good one stays (0 = for ever)")
	atLeast(c, 0, "backup-every", "backup-keep", "backup-keep-for")
}

func (f *backupFlags) check() error {
	switch p := &f.policy; {
	case p.Every > 0 && p.Every < time.Minute:
		return usagef("--backup-every %s: want a minute at least, or 0", p.Every)
	case (p.Every > 0) != (p.Dir != ""):
		return usagef("--backup-every and --backup-dir belong together: name both, or neither")
	}
	return nil
}

// artifactFlags bounds the artifacts that a tracker stores.
type artifactFlags struct {
	address                            string
	space, uploads, uploadSpace, scrub int
	keep                               time.Duration
}

func (f *artifactFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "artifacts", "", "`address` of an object store for artifacts, which trackers may share: s3://BUCKET/PREFIX?region=REGION (default in --data)")
	c.Flags().IntVar(&f.space, "artifact-space", artifact.DefaultCapBytes/mib, "MiB of artifacts; the least recently used are evicted first")
	c.Flags().DurationVar(&f.keep, "keep-artifacts", 30*24*time.Hour, "how long an artifact is kept after its last use (0 = until space is needed)")
	c.Flags().IntVar(&f.uploads, "max-uploads", artifact.DefaultUploads, "unfinished uploads that an identity may have")
	c.Flags().IntVar(&f.uploadSpace, "max-upload-space", 0, "MiB of unfinished uploads of an identity (0 = half of --artifact-space)")
	c.Flags().IntVar(&f.scrub, "scrub-rate", 4, "MiB of artifacts, and of records, read per second to find damage, each once a day (0 = check only what is used)")
	atLeast(c, 0, "keep-artifacts", "max-upload-space", "scrub-rate")
	atLeast(c, 1, "artifact-space", "max-uploads")
}

func (f *artifactFlags) check() error {
	if f.address != "" {
		if _, err := s3.ParseAddress(f.address); err != nil {
			return usagef("--artifacts: %v", err)
		}
	}
	if f.uploadSpace > f.space {
		return usagef("--max-upload-space %d: want at most the --artifact-space, %d", f.uploadSpace, f.space)
	}
	return nil
}

func (f *artifactFlags) options() artifact.Options {
	return artifact.Options{
		CapBytes: int64(f.space) * mib, Keep: f.keep, Uploads: f.uploads, UploadBytes: int64(f.uploadSpace) * mib,
		ScrubBytes: int64(f.scrub) * mib,
	}
}

// shareFlags configures how owners share a farm.
type shareFlags struct {
	jobs, trials, artifacts int
	stored                  int
	ownerStored             map[string]int
	ownerWeight             map[string]string
	ownerJobs               map[string]int
	ownerTrials             map[string]int
	ownerArtifacts          map[string]int
}

const mib = 1 << 20

func (f *shareFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.jobs, "max-jobs", 1000, "unfinished jobs of an owner (0 = no limit)")
	c.Flags().IntVar(&f.trials, "max-trials", 0, "trials of all jobs of an owner (0 = no limit)")
	c.Flags().IntVar(&f.artifacts, "max-artifacts", 0, "MiB of artifacts of an owner that may wait for devices (0 = no limit)")
	c.Flags().IntVar(&f.stored, "max-stored", 2048, "MiB of specifications and events of an owner's jobs; the oldest ended jobs are deleted (0 = no limit)")
	atLeast(c, 0, "max-jobs", "max-trials", "max-artifacts", "max-stored")
	c.Flags().StringToStringVar(&f.ownerWeight, "owner-weight", nil, "shares of agents' time of some `owners`, e.g. ana=3,ci=0.5; others have 1")
	c.Flags().StringToIntVar(&f.ownerJobs, "owner-max-jobs", nil, "--max-jobs of some `owners`, e.g. ci=50")
	c.Flags().StringToIntVar(&f.ownerTrials, "owner-max-trials", nil, "--max-trials of some `owners`")
	c.Flags().StringToIntVar(&f.ownerArtifacts, "owner-max-artifacts", nil, "--max-artifacts of some `owners`")
	c.Flags().StringToIntVar(&f.ownerStored, "owner-max-stored", nil, "--max-stored of some `owners`")
}

// shares parses and validates the flags.
func (f *shareFlags) shares() (policy.Shares, error) {
	shares := policy.Shares{
		Default: policy.Share{Jobs: f.jobs, Trials: f.trials, ArtifactBytes: int64(f.artifacts) * mib, StoredBytes: int64(f.stored) * mib},
		Owners:  map[string]policy.Share{},
	}
	for _, owner := range slices.Sorted(maps.Keys(f.ownerWeight)) {
		text := f.ownerWeight[owner]
		weight, err := strconv.ParseFloat(text, 64)
		if err != nil || !(weight > 0) || math.IsInf(weight, 0) {
			return policy.Shares{}, usagef("--owner-weight %s=%s: want a positive number", owner, text)
		}
		share := shares.Owners[owner]
		share.Weight = weight
		shares.Owners[owner] = share
	}
	for _, limit := range []struct {
		flag   string
		values map[string]int
		set    func(s *policy.Share, value int)
	}{
		{"owner-max-jobs", f.ownerJobs, func(s *policy.Share, n int) { s.Jobs = n }},
		{"owner-max-trials", f.ownerTrials, func(s *policy.Share, n int) { s.Trials = n }},
		{"owner-max-artifacts", f.ownerArtifacts, func(s *policy.Share, n int) { s.ArtifactBytes = int64(n) * mib }},
		{"owner-max-stored", f.ownerStored, func(s *policy.Share, n int) { s.StoredBytes = int64(n) * mib }},
	} {
		for _, owner := range slices.Sorted(maps.Keys(limit.values)) {
			value := limit.values[owner]
			if value < 0 || value > math.MaxInt32 {
				return policy.Shares{}, usagef("--%s %s=%d: want a number of at least 0", limit.flag, owner, value)
			}
			share := shares.Owners[owner]
			limit.set(&share, value)
			shares.Owners[owner] = share
		}
	}
	return shares, nil
}
