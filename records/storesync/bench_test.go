package storesync_test

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tilth-dev/tilth/lab/testkit/storetest"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/storesync"
)

// realistic returns a record of realistic size, of one of 100 workloads.
func realistic(n int64) *tilthv1.Record {
	r := storetest.Record("generic-avx2-1t-clang-19.1.7-0c124c9ad9", fmt.Sprint("workload ", n%100), n, 1e-3)
	m := r.GetMeasurement()
	m.Candidate.Trace = fmt.Appendf(nil, "tilth-trace 1\n%ssplit 0 4 %d 0\n", strings.Repeat("reorder 0 3 5 6 2\n", 10), n)
	m.Candidate.Digest, m.Candidate.Origin = records.Digest(m.Candidate.Trace), []byte("unroll=4 span=64 tile=8x64 order=2")
	m.Candidate.Numerics, m.Candidate.Multiplications, m.Candidate.Trial = "strict", 1, uint32(n/100)
	m.SamplesSeconds = []float64{1e-3, 1.01e-3, 1.02e-3, 0.99e-3, 1e-3}
	m.BuildSeconds, m.RunSeconds, m.RelativeError, m.CalibrationRatio = 0.2, 0.015, 1e-7, 1.01
	m.Interval = &tilthv1.Interval{LowSeconds: 0.99e-3, HighSeconds: 1.02e-3, Level: 0.94}
	return r
}

// BenchmarkSync sends 100,000 records from a records file to an empty one.
func BenchmarkSync(b *testing.B) {
	const n = 100_000
	dir := b.TempDir()
	source, err := bolt.Open(filepath.Join(dir, "from.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer source.Close()
	at, sizeBytes := int64(0), 0
	_, _, err = source.Import(b.Context(), func() (*tilthv1.Record, error) {
		if at++; at > n {
			return nil, io.EOF
		}
		r := realistic(at)
		sizeBytes += proto.Size(r)
		return r, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		target, err := bolt.Open(filepath.Join(dir, fmt.Sprint(b.Elapsed(), ".db")), bolt.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, sent := range []uint64{n, 0} { // nothing is sent the second time
			began := b.Elapsed()
			r, err := storesync.Sync(b.Context(), storesync.Store{Measurements: source}, storesync.Store{Measurements: target}, storesync.Options{})
			if err != nil || r.Sent != sent {
				b.Fatalf("%+v, %v", r, err)
			}
			if unit := map[uint64]string{n: "sent/s", 0: "compared/s"}[sent]; b.Elapsed() > began {
				b.ReportMetric(n/(b.Elapsed()-began).Seconds(), unit)
			}
		}
		if err := target.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sizeBytes)/n, "bytes/record")
}
