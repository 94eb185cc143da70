package main

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/internal/artifact/s3"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/tracker"
	"github.com/tilth-dev/tilth/tracker/policy"
)

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
