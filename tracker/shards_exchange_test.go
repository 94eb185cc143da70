package tracker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/recordsource"
)

// cutting is a store that calls cut after a number of batches.
type cutting struct {
	recordsource.Peer
	batches atomic.Int64
	after   int64
	cut     func()
}

func (c *cutting) Add(ctx context.Context, batch []*tilthv1.Record) (added, there uint64, err error) {
	added, there, err = c.Peer.Add(ctx, batch)
	if c.batches.Add(1) == c.after {
		c.cut()
	}
	return added, there, err
}

// mustEnd syncs until a sync succeeds and returns the total number of records sent.
func mustEnd(t *testing.T, from storesync.Source, to storesync.Destination) (sent uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // detects a hang
	defer cancel()
	for {
		report, err := storesync.Sync(ctx, from, to, storesync.Options{})
		if len(report.Refused()) > 0 {
			t.Fatalf("records are refused: %v", report.Refused())
		}
		if sent += report.Sent; err == nil {
			return sent
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		t.Logf("a sync is broken off: %v", err)
	}
}

// recordsOf returns the records of a store by group and key.
func recordsOf(t *testing.T, of recordsource.Peer) map[string]*tilthv1.Record {
	t.Helper()
	all := map[string]*tilthv1.Record{}
	err := of.List(t.Context(), "", "", func(r *tilthv1.Record) error {
		name := fmt.Sprint(r.GetTarget(), r.GetWorkloadDigest(), r.GetMeasurement().GetAt().GetSeconds())
		if all[name] != nil {
			t.Errorf("record %s is there twice", name)
		}
		all[name] = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func openRecords(t *testing.T, name string) recordsource.Peer {
	t.Helper()
	f := must[recordsource.Peer](t)(recordsource.OpenFile(filepath.Join(t.TempDir(), name), true, slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { f.Close() })
	return f
}

func dialRecords(t *testing.T, address string) recordsource.Peer {
	t.Helper()
	p := must[recordsource.Peer](t)(recordsource.Dial(address, slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { p.Close() })
	return p
}

// summaries returns a store's summaries of all groups.
func summaries(t *testing.T, of storesync.Source) (all []storesync.Summary) {
	t.Helper()
	for after := ""; ; {
		page, next, err := of.Groups(t.Context(), storesync.Filter{}, after)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if after = next; next == "" {
			return all
		}
	}
}

// TestRecordsAreExchangedWithTrackersThatShareADatabase sends records from a file to trackers that share a database,
// and from there to another file. Both exchanges are interrupted, and one tracker dies meanwhile. Each record must
// arrive once, from any shard.
func TestRecordsAreExchangedWithTrackersThatShareADatabase(t *testing.T) {
	t.Parallel()                // mostly waits
	n := quickOr(9_000, 13_000) // three batches, or four
	a, b := newRivals(t)
	from := openRecords(t, "from.db")
	at := int64(0)
	_, _, err := from.Import(t.Context(), func() (*tilthv1.Record, error) {
		if at++; at > int64(n) {
			return nil, io.EOF
		}
		return storetest.Record([]string{"cpu", "gpu"}[at%2], fmt.Sprint("w", at%4), at, 0.5), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := recordsOf(t, from)
	farm := dialRecords(t, a.address()+","+b.address())

	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	report, err := storesync.Sync(ctx, from, &cutting{Peer: farm, after: 1, cut: cut}, storesync.Options{})
	if err == nil || report.Sent == 0 || report.Sent >= uint64(n) {
		t.Fatalf("a sync that is cut sends %d of %d records: %v", report.Sent, n, err)
	}
	first := report.Sent
	if sent := first + mustEnd(t, from, &cutting{Peer: farm, after: 1, cut: a.kill}); sent != uint64(n) {
		t.Errorf("%d records were sent, want %d", sent, n)
	}
	a.start()
	a.has(someShards / 2)
	b.has(someShards / 2)
	told := summaries(t, from)
	for name, side := range map[string]recordsource.Peer{"one tracker": dialRecords(t, a.address()), "the other": dialRecords(t, b.address()), "both": farm} {
		if got := summaries(t, side); fmt.Sprint(got) != fmt.Sprint(told) {
			t.Errorf("%s sums up %v, want %v", name, got, told)
		}
	}

	back := openRecords(t, "back.db")
	ctx, cut = context.WithCancel(t.Context())
	defer cut()
	if report, err = storesync.Sync(ctx, farm, &cutting{Peer: back, after: 1, cut: cut}, storesync.Options{}); err == nil || report.Sent == 0 {
		t.Fatalf("a sync back that is cut sends %d records: %v", report.Sent, err)
	}
	if sent := report.Sent + mustEnd(t, farm, &cutting{Peer: back, after: 1, cut: b.kill}); sent != uint64(n) {
		t.Errorf("%d records came back, want %d", sent, n)
	}
	got := recordsOf(t, back)
	for name, r := range want {
		if !proto.Equal(got[name], r) {
			t.Fatalf("record %s came back as %v, want %v", name, got[name], r)
		}
	}
	if len(got) != n {
		t.Errorf("%d records came back, want %d", len(got), n)
	}
	if sent := mustEnd(t, from, farm) + mustEnd(t, farm, back) + mustEnd(t, back, from); sent != 0 {
		t.Errorf("%d records are sent where all are", sent)
	}
}
