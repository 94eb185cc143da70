package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tilth-dev/tilth/internal/artifact"
)

// flag converts a boolean to a gauge value.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// newStoreCollector returns metrics of what the tracker has on disk.
func newStoreCollector(from Sources) prometheus.Collector {
	byReason := func(name, help string, counts func(artifact.Stats) map[string]int64) metric[artifact.Stats] {
		return gauges(name, help, []string{"reason"}, func(s artifact.Stats, emit emitFunc) {
			for why, n := range counts(s) {
				emit(float64(n), why)
			}
		}).counted()
	}
	c := &collector[artifact.Stats]{from.Artifacts, []metric[artifact.Stats]{
		gauge("store_size_bytes", "Size of the records file.", func(artifact.Stats) float64 { return float64(from.Store.SizeBytes()) }),
		gauge("store_away", "1 if the database server is unavailable.",
			func(artifact.Stats) float64 { return flag(from.Remote != nil && from.Remote.Unavailable() != nil) }),
		gauge("artifacts_away", "1 if the object store of artifacts is unavailable.", func(s artifact.Stats) float64 { return flag(s.Away) }),
		gauge("artifacts_size_bytes", "Size of artifacts, including unfinished uploads.", func(s artifact.Stats) float64 { return float64(s.UsedBytes) }),
		gauge("artifacts_files", "Stored artifacts.", func(s artifact.Stats) float64 { return float64(s.Files) }),
		gauge("artifacts_uploads", "Unfinished uploads, in progress or interrupted.", func(s artifact.Stats) float64 { return float64(s.Uploads) }),
		gauge("artifacts_unfinished_bytes", "Size of unfinished uploads.", func(s artifact.Stats) float64 { return float64(s.UnfinishedBytes) }),
		gauge("artifacts_checked_bytes_total", "Size of artifacts whose digests were verified.",
			func(s artifact.Stats) float64 { return float64(s.CheckedBytes) }).counted(),
		gauge("artifacts_unchecked_seconds", "Time since the oldest verification of an artifact.",
			func(s artifact.Stats) float64 { return max(time.Since(s.OldestCheck), 0).Seconds() }),
		byReason("artifacts_dropped_total", "Artifacts and parts of uploads that were dropped, by reason.",
			func(s artifact.Stats) map[string]int64 { return s.Dropped }),
		byReason("artifacts_refused_total", "Uploads refused for lack of space or by the limit of their identity, by reason.",
			func(s artifact.Stats) map[string]int64 { return s.Refused }),
		{desc("disk_free_bytes", "Free disk space of the records file or of the artifacts, whichever is less."), prometheus.GaugeValue,
			func(_ artifact.Stats, emit emitFunc) error {
				free, err := from.FreeBytes()
				if err == nil {
					emit(float64(free))
				}
				return err
			}},
	}}
	if file := from.File; file != nil {
		c.metrics = append(c.metrics,
			gauge("store_reusable_bytes", "Free pages within the records file.", func(artifact.Stats) float64 { return float64(file.FreeBytes()) }),
			gauge("store_damaged_rows_total", "Damaged rows found in the records file.",
				func(artifact.Stats) float64 { return float64(file.Damaged()) }).counted())
	}
	return c
}
