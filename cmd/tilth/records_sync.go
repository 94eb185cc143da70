package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

const syncLong = `Copy to TO the records that it lacks.

FROM and TO are each a records file, an export as JSON lines (FILE.jsonl, FILE.jsonl.gz),
or a tracker (tracker:HOST:PORT, tracker:unix:PATH). FROM may also be an export that
'tilth records export --static' made: https://HOST/PATH, file:///FOLDER or a folder.

Both sides are compared by the digests and keys of their records, and only records that
TO lacks are sent. An interrupted sync is therefore completed by the next one. Invalid
records are refused and counted. TO never loses a record, and records pruned there
return for as long as FROM has them.

Adding to a tracker's records requires an admin token. --tls-ca, --tls-cert, --tls-key
and --token-file apply to the side that is a tracker. If both are, they apply to TO, and
--from-tls-ca etc. to FROM, which never receives the credentials for TO.`

// syncCommand exchanges records.
type syncCommand struct {
	*app
	from, to        callerFlags
	target, modelOf string
	workloads       []string
	model           modelFlags
	storage         storageFlag
	dry, any        bool
	verify          verifyFlag
	log             logFlag
}

// syncResult describes the result of a sync in JSON.
type syncResult struct {
	From    string              `json:"from"`
	To      string              `json:"to"`
	Sent    uint64              `json:"sent"`
	There   uint64              `json:"already_there"`
	Refused []storesync.Refusal `json:"refused"`
	Dry     bool                `json:"dry_run"`
}

func newRecordsSync(a *app) *cobra.Command {
	s := &syncCommand{app: a}
	c := &cobra.Command{
		Use: "sync FROM TO", Short: "Copy missing records to a file or a farm", Long: syncLong,
		Example: `  tilth records sync tracker:127.0.0.1:9190 mine.db
  tilth records sync mine.db tracker:farm.example.com:9190 --tls-ca ca.crt --token-file admin.token
  tilth records sync https://records.example.com/farm mine.db --model resnet18.onnx
  tilth records sync tracker:127.0.0.1:9190 farm.jsonl.gz --dry-run`,
		Args: cobra.ExactArgs(2),
	}
	c.Flags().StringVar(&s.target, "target", "", "only records of this target `fingerprint`")
	c.Flags().StringSliceVar(&s.workloads, "workload", nil, "only records of the workloads with these `digests`, or with ones that begin so")
	c.Flags().StringVar(&s.modelOf, "model", "", "only records of the tasks of this `model`")
	s.model.add(c)
	s.storage.addWeights(c)
	c.MarkFlagsMutuallyExclusive("workload", "model")
	s.to.add(c, "", "")
	s.from.add(c, "from-", ", of FROM")
	allowHTTPFlag(c, &s.any)
	s.verify.add(c, "the export FROM")
	c.Flags().BoolVar(&s.dry, "dry-run", false, "only say what would be sent")
	s.jsonFlag(c)
	s.log.add(c, slog.LevelWarn)
	return a.leaf(c, func(ctx context.Context, args []string) error { return s.run(ctx, args[0], args[1]) })
}

func (s *syncCommand) run(ctx context.Context, from, to string) error {
	if from == to {
		return usagef("FROM and TO are both %s: name another", from)
	}
	filter, err := s.filter()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(to, syncTracker) {
		s.from = s.from.or(s.to)
	}
	source, err := s.openFrom(ctx, from)
	if err != nil {
		return err
	}
	if err := s.complete(ctx, source, &filter); err != nil {
		return errors.Join(err, source.close())
	}
	farm := trackerFlags{callerFlags: s.to}
	if addr, is := strings.CutPrefix(to, syncTracker); is {
		farm.addr = addr
	}
	rates, report := newRateCheck(ctx, &farm, s.log.logger(s.stderr)), &storesync.Report{}
	err = s.into(ctx, to, func(side storesync.Destination) (err error) {
		report, err = source.sync(ctx, side, storesync.Options{Filter: filter, Dry: s.dry, Check: rates.check})
		return err
	})
	err = errors.Join(err, source.close())
	if err != nil && report.Sent > 0 && !s.dry && !recordsource.IsLines(to) {
		err = fmt.Errorf("%w: %d records were sent; another sync continues from there", err, report.Sent)
	}
	if err != nil {
		return err
	}
	return s.print(syncResult{From: from, To: to, Sent: report.Sent, There: report.There, Refused: report.Refused(), Dry: s.dry})
}

// filter returns the filter of the flags, without the workloads given by digest prefixes.
func (s *syncCommand) filter() (storesync.Filter, error) {
	f := storesync.Filter{Target: s.target}
	for i, text := range s.workloads {
		given, err := digestBegins(text)
		if err == nil && given == "" {
			err = usagef("--workload %q: want a digest or its beginning, such as 'tilth tasks' prints", text)
		}
		if err != nil {
			return f, err
		}
		s.workloads[i] = given
	}
	if s.modelOf == "" {
		return f, nil
	}
	if err := s.storage.check(0); err != nil {
		return f, err
	}
	for _, storage := range s.storage.anywhere() {
		p, err := s.model.load(s.modelOf, storage)
		if err != nil {
			return f, err
		}
		f.Workloads = append(f.Workloads, workloadDigests(p)...)
	}
	slices.Sort(f.Workloads)
	f.Workloads = slices.Compact(f.Workloads)
	return f, nil
}

// complete adds the workloads of FROM that match the digest prefixes.
func (s *syncCommand) complete(ctx context.Context, source syncSource, f *storesync.Filter) error {
	if len(s.workloads) == 0 {
		return nil
	}
	found := make([]map[string]bool, len(s.workloads))
	for i := range found {
		found[i] = map[string]bool{}
	}
	err := source.workloads(ctx, *f, func(digest string) {
		for i, given := range s.workloads {
			if records.ValidDigest(digest) && strings.HasPrefix(digest, given) {
				found[i][digest] = true
			}
		}
	})
	if err != nil {
		return err
	}
	for i, given := range s.workloads {
		one := recordsFlags{target: s.target, workload: given}
		if err := one.complete(given, found[i]); err != nil {
			return err
		}
		f.Workloads = append(f.Workloads, one.workload)
	}
	slices.Sort(f.Workloads)
	f.Workloads = slices.Compact(f.Workloads)
	return nil
}

// syncSource is an opened FROM.
type syncSource struct {
	// workloads visits the digests of workloads with records that pass the filter, possibly repeatedly.
	workloads func(ctx context.Context, f storesync.Filter, visit func(digest string)) error

	sync  func(ctx context.Context, to storesync.Destination, o storesync.Options) (*storesync.Report, error)
	close func() error
}

// syncTracker is the prefix of a tracker's address.
const syncTracker = "tracker:"

func (s *syncCommand) openFrom(ctx context.Context, where string) (syncSource, error) {
	key, err := s.verify.key()
	if err != nil {
		return syncSource{}, err
	}
	if !recordsource.IsStatic(where) && recordsource.IsLines(where) {
		return syncSource{
			close: func() error { return nil },
			workloads: func(_ context.Context, f storesync.Filter, visit func(string)) error {
				return recordsource.ReadLines(where, key, func(next func() (*tilthv1.Record, error)) error {
					return workloadsOfLines(next, f, visit)
				})
			},
			sync: func(ctx context.Context, to storesync.Destination, o storesync.Options) (report *storesync.Report, err error) {
				report = &storesync.Report{}
				failed := recordsource.ReadLines(where, key, func(next func() (*tilthv1.Record, error)) error {
					report, err = storesync.SyncLines(ctx, next, to, o)
					return err
				})
				return report, failed
			},
		}, nil
	}
	peer, err := s.openPeer(ctx, where, s.from, key, false)
	if err != nil {
		return syncSource{}, err
	}
	return syncSource{
		close: peer.Close,
		workloads: func(ctx context.Context, f storesync.Filter, visit func(string)) error {
			return eachGroup(ctx, peer, f, math.MaxInt, func(g storesync.Summary) { visit(g.Workload) })
		},
		sync: func(ctx context.Context, to storesync.Destination, o storesync.Options) (*storesync.Report, error) {
			return storesync.Sync(ctx, peer, to, o)
		},
	}, nil
}

func workloadsOfLines(next func() (*tilthv1.Record, error), f storesync.Filter, visit func(string)) error {
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Wants(records.Group{Target: r.GetTarget(), Workload: r.GetWorkloadDigest()}) {
			visit(r.GetWorkloadDigest())
		}
	}
}

// openPeer opens a side that is not an export as JSON lines. With a key, it must be of a kind that can be
// signed, whatever an earlier check saw.
func (s *syncCommand) openPeer(ctx context.Context, where string, proof callerFlags, key *signing.PublicKey, writable bool) (recordsource.Peer, error) {
	log := s.log.logger(s.stderr)
	if addr, is := strings.CutPrefix(where, syncTracker); is {
		if key != nil {
			return nil, unsignable(where)
		}
		options, err := proof.proof.DialOptions(addr, log)
		if err != nil {
			return nil, err
		}
		return recordsource.Dial(addr, log, options...)
	}
	if recordsource.IsStatic(where) {
		if writable {
			return nil, usagef("%s: records are not sent there: 'tilth records export --static' writes such a folder", where)
		}
		return openStatic(ctx, where, proof.proof.TLS, s.any, key)
	}
	if key != nil {
		return nil, unsignable(where)
	}
	return recordsource.OpenFile(where, writable, log)
}

// into calls do with TO and persists the result.
func (s *syncCommand) into(ctx context.Context, where string, do func(storesync.Destination) error) (err error) {
	if !recordsource.IsStatic(where) && recordsource.IsLines(where) {
		lines, err := recordsource.OpenLines(ctx, where, s.log.logger(s.stderr))
		if err != nil {
			return err
		}
		if err = do(lines); err == nil && !s.dry {
			err = lines.Write(ctx, s.leftOut)
		}
		return errors.Join(err, lines.Close())
	}
	peer, err := s.openPeer(ctx, where, s.to, nil, !s.dry)
	if s.dry && errors.Is(err, records.ErrMissing) {
		return do(storesync.EmptySide{})
	}
	if err != nil {
		return err
	}
	return errors.Join(do(peer), peer.Close())
}

func (s *syncCommand) print(r syncResult) error {
	if s.asJSON {
		if r.Refused == nil {
			r.Refused = []storesync.Refusal{}
		}
		return writeJSON(s.stdout, r)
	}
	text := "sent %d records to %s, %d were there already\n"
	if r.Dry {
		text = "would send %d records to %s, %d are there already\n"
	}
	_, err := fmt.Fprintf(s.stdout, text, r.Sent, r.To, r.There)
	for _, refusal := range r.Refused {
		if err == nil {
			_, err = fmt.Fprintf(s.stdout, "refused %d records for their %s, the first: %s\n", refusal.Records, refusal.Reason, refusal.First)
		}
	}
	return err
}
