package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/artifact"
)

// newStoreCollector returns the collector of what the tracker has on disk.
func newStoreCollector(from Sources) prometheus.Collector {
	type F = artifact.Stats
	type emitter = func(value float64, labels ...string)
	same := func(reason string) string { return reason }
	ofFile := func(value func(File) float64) func(F, emitter) {
		return func(_ F, emit emitter) {
			if from.File != nil {
				emit(value(from.File))
			}
		}
	}
	return &collector[F]{from.Artifacts, []family[F]{
		gauge("store_size_bytes", "Size of the records file.", func(F) float64 { return float64(from.Store.SizeBytes()) }),
		gauges("store_reusable_bytes", "Free pages within the records file.", nil, ofFile(func(f File) float64 { return float64(f.FreeBytes()) })),
		counters("store_damaged_rows_total", "Damaged rows found in the records file.", nil, ofFile(func(f File) float64 { return float64(f.Damaged()) })),
		gauge("store_away", "1 if the database server is unavailable.",
			func(F) float64 { return flag(from.Remote != nil && from.Remote.Unavailable() != nil) }),
		gauge("artifacts_away", "1 if the object store of artifacts is unavailable.", func(f F) float64 { return flag(f.Away) }),
		gauge("artifacts_size_bytes", "Size of artifacts, including unfinished uploads.", func(f F) float64 { return float64(f.UsedBytes) }),
		gauge("artifacts_files", "Stored artifacts.", func(f F) float64 { return float64(f.Files) }),
		gauge("artifacts_uploads", "Unfinished uploads, in progress or interrupted.", func(f F) float64 { return float64(f.Uploads) }),
		gauge("artifacts_unfinished_bytes", "Size of unfinished uploads.", func(f F) float64 { return float64(f.UnfinishedBytes) }),
		counters("artifacts_dropped_total", "Artifacts and parts of uploads that were dropped, by reason.", []string{"reason"}, each(func(f F) map[string]int64 { return f.Dropped }, same)),
		counters("artifacts_refused_total", "Uploads refused for lack of space or by the limit of their identity, by reason.", []string{"reason"},
			each(func(f F) map[string]int64 { return f.Refused }, same)),
		counters("artifacts_checked_bytes_total", "Size of artifacts whose digests were verified.", nil, func(f F, emit emitter) { emit(float64(f.CheckedBytes)) }),
		gauge("artifacts_unchecked_seconds", "Time since the oldest verification of an artifact.",
			func(f F) float64 { return max(time.Since(f.OldestCheck), 0).Seconds() }),
		gauges("disk_free_bytes", "Free disk space of the records file or of the artifacts, whichever is less; absent if unknown.", nil, func(_ F, emit emitter) {
			if free, err := from.FreeBytes(); err == nil {
				emit(float64(free))
			}
		}),
	}}
}

// flag converts a boolean to a gauge value.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
