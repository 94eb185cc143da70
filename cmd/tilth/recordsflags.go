package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/staticsite"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// recordsName is the name of the records file in the user's or a tracker's data folder.
const recordsName = "tilth.db"

// recordsFlag adds --records.
func recordsFlag(c *cobra.Command, records *string) {
	c.Flags().StringVar(records, "records", "", "records `file` (default $XDG_DATA_HOME/tilth/tilth.db)")
}

// recordsPath returns the given records file or the user's default.
func recordsPath(asked string) (string, error) {
	if asked == stdio {
		return "", usagef("--records -: name a file, since records cannot be a stream: see 'tilth records export'")
	}
	if recordsource.IsStatic(asked) {
		return "", usagef("--records %s: this command needs a records file: 'tilth records sync' makes one of an export", asked)
	}
	if asked != "" {
		return asked, nil
	}
	dir, err := dataDir()
	return filepath.Join(dir, recordsName), err
}

// recordsFlags selects a source of records and filters.
type recordsFlags struct {
	file      string
	tracker   trackerFlags
	allowHTTP bool
	log       logFlag
	// verify is the key that must have signed the records, unless they are the user's own; nil means none.
	verify *signing.PublicKey
	// target and workload select records; empty selects all.
	target, workload string
}

// addSource adds the flags of the source.
func (f *recordsFlags) addSource(c *cobra.Command) {
	recordsFlag(c, &f.file)
	f.tracker.add(c, "")
	f.tracker.excludes(c, "records")
	f.log.level = slog.LevelWarn
}

// addRead adds the flags of a source that is only read and may be a served export.
func (f *recordsFlags) addRead(c *cobra.Command) {
	f.addSource(c)
	readRecordsFlags(c, &f.allowHTTP)
}

// addFilter adds the flags of the filters.
func (f *recordsFlags) addFilter(c *cobra.Command) {
	c.Flags().StringVar(&f.target, "target", "", "only records of the target with this `fingerprint`")
	c.Flags().StringVar(&f.workload, "workload", "", "only records of the workload with this `digest`, or prefix of one")
}

// onRecords returns a command that reads records. It adds their source and filters to its flags.
func (a *app) onRecords(c *cobra.Command, f *recordsFlags, work func(context.Context, recordsource.Source) error) *cobra.Command {
	f.addRead(c)
	f.addFilter(c)
	return a.leaf(c, func(ctx context.Context, _ []string) error {
		source, err := f.open(ctx, a, false)
		if err != nil {
			return err
		}
		defer source.Close()
		if err := f.resolve(ctx, source); err != nil {
			return err
		}
		return work(ctx, source)
	})
}

// errFound ends a listing at the first record.
var errFound = errors.New("found")

// resolve completes a digest prefix, as printed by tables, to the only matching workload. It returns an error
// if no record matches the filters, because one of them must be misspelt.
func (f *recordsFlags) resolve(ctx context.Context, source recordsource.Source) error {
	if f.target == "" && f.workload == "" {
		return nil
	}
	given, err := digestBegins(f.workload)
	if err != nil {
		return err
	}
	whole := ""
	if records.ValidDigest(given) {
		whole = given
	}
	found := map[string]bool{}
	if export, is := source.(recordsource.Static); is { // its index has the digests, without the records
		groups, _, err := export.Groups(ctx, storesync.Filter{Target: f.target}, "")
		if err != nil {
			return err
		}
		for _, g := range groups {
			if strings.HasPrefix(g.Workload, given) {
				found[g.Workload] = true
			}
		}
		return f.complete(given, found)
	}
	err = source.List(ctx, f.target, whole, func(r *tilthv1.Record) error {
		if digest := r.GetWorkloadDigest(); strings.HasPrefix(digest, given) {
			found[digest] = true
			if given == "" || whole != "" {
				return errFound
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return err
	}
	return f.complete(given, found)
}

// digestBegins validates a workload's digest or prefix and removes the trailing dots printed by tables.
func digestBegins(text string) (string, error) {
	given := strings.TrimRight(text, ".…")
	if strings.Trim(given, "0123456789abcdef") != "" || len(given) > 64 {
		return "", usagef("--workload %s: want a digest or its beginning, such as 'tilth tasks' prints", text)
	}
	return given, nil
}

// complete completes a digest prefix, given all matches.
func (f *recordsFlags) complete(given string, found map[string]bool) error {
	switch {
	case len(found) == 0:
		return fmt.Errorf("there is no record of %s: see 'tilth records list'", f.wanted())
	case given == "":
		return nil
	case len(found) > 1:
		return fmt.Errorf("--workload %s: %d workloads match: give more of the digest of one of %s", f.workload, len(found), someDigests(found))
	}
	for f.workload = range found {
	}
	return nil
}

// someDigests formats a few digests like tables do.
func someDigests(digests map[string]bool) string {
	const limit = 5
	all := slices.Sorted(maps.Keys(digests))
	text := humanize.Join(all[:min(len(all), limit)], ", ", humanize.Digest)
	if len(all) > limit {
		text += ", ..."
	}
	return text
}

// wanted describes the filters.
func (f *recordsFlags) wanted() string {
	var parts []string
	if f.workload != "" {
		parts = append(parts, "workload "+f.workload)
	}
	if f.target != "" {
		parts = append(parts, "target "+f.target)
	}
	return strings.Join(parts, " and ")
}

func (f *recordsFlags) open(ctx context.Context, a *app, writable bool) (recordsource.Source, error) {
	logger := f.log.logger(a.stderr)
	if f.tracker.addr != "" {
		if f.verify != nil {
			return nil, unsignable(syncTracker + f.tracker.addr)
		}
		options, err := f.tracker.options(logger)
		if err != nil {
			return nil, err
		}
		return recordsource.Dial(f.tracker.addr, logger, options...)
	}
	if !writable && recordsource.IsStatic(f.file) {
		return openStatic(ctx, f.file, f.tracker.proof.TLS, f.allowHTTP, f.verify)
	}
	if f.verify != nil && f.file != "" {
		return nil, unsignable(f.file)
	}
	path, err := recordsPath(f.file)
	if err != nil {
		return nil, err
	}
	return recordsource.OpenFile(path, writable, logger)
}

// readRecordsFlags lets --records accept a served export, and adds the related flags.
func readRecordsFlags(c *cobra.Command, allowHTTP *bool) {
	c.Flags().Lookup("records").Usage = "records `file`, or an export's URL or folder (default $XDG_DATA_HOME/tilth/tilth.db)"
	allowHTTPFlag(c, allowHTTP)
}

func allowHTTPFlag(c *cobra.Command, allowed *bool) {
	c.Flags().BoolVar(allowed, "allow-http", false, "accept unencrypted http to other machines, which an attacker on the way can change")
}

// openStatic opens an export of records. Downloads are cached.
func openStatic(ctx context.Context, where string, tls certs.ClientConfig, allowHTTP bool, key *signing.PublicKey) (recordsource.Static, error) {
	o := staticsite.ServerOptions{AllowHTTP: allowHTTP}
	cache, err := cacheDir()
	if err != nil {
		return recordsource.Static{}, err
	}
	o.Cache = filepath.Join(cache, "records")
	if tls != (certs.ClientConfig{}) {
		if o.TLS, err = tls.Config(); err != nil {
			return recordsource.Static{}, err
		}
	}
	return recordsource.OpenStatic(ctx, where, key, o)
}
