package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// storeCollector exports what the tracker has on disk.
type storeCollector struct {
	from                            Sources
	size, reusable, artifacts, free *prometheus.Desc
	damaged                         *prometheus.Desc // rows of the records file
	away, artifactsAway             *prometheus.Desc // the database, and the object store
	// Of the artifact store.
	files, uploads, unfinished, dropped, refused, checked, unchecked *prometheus.Desc
}

func newStoreCollector(from Sources) *storeCollector {
	return &storeCollector{
		from:          from,
		size:          desc("store_size_bytes", "Size of the records file."),
		reusable:      desc("store_reusable_bytes", "Free pages within the records file."),
		damaged:       desc("store_damaged_rows_total", "Damaged rows found in the records file."),
		away:          desc("store_away", "1 if the database server is unavailable."),
		artifactsAway: desc("artifacts_away", "1 if the object store of artifacts is unavailable."),
		artifacts:     desc("artifacts_size_bytes", "Size of artifacts, including unfinished uploads."),
		files:         desc("artifacts_files", "Stored artifacts."),
		uploads:       desc("artifacts_uploads", "Unfinished uploads, in progress or interrupted."),
		unfinished:    desc("artifacts_unfinished_bytes", "Size of unfinished uploads."),
		dropped:       desc("artifacts_dropped_total", "Artifacts and parts of uploads that were dropped, by reason.", "reason"),
		refused:       desc("artifacts_refused_total", "Uploads refused for lack of space or by the limit of their identity, by reason.", "reason"),
		checked:       desc("artifacts_checked_bytes_total", "Size of artifacts whose digests were verified."),
		unchecked:     desc("artifacts_unchecked_seconds", "Time since the oldest verification of an artifact."),
		free:          desc("disk_free_bytes", "Free disk space of the records file or of the artifacts, whichever is less."),
	}
}

// Describe implements prometheus.Collector.
func (s *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.size, s.reusable, s.damaged, s.away, s.artifactsAway, s.artifacts, s.files, s.uploads, s.unfinished, s.dropped, s.refused, s.checked, s.unchecked, s.free,
	} {
		ch <- d
	}
}

// flag converts a boolean to a gauge value.
func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Collect implements prometheus.Collector.
func (s *storeCollector) Collect(ch chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	tell(s.size, prometheus.GaugeValue, float64(s.from.Store.SizeBytes()))
	if file := s.from.File; file != nil {
		tell(s.reusable, prometheus.GaugeValue, float64(file.FreeBytes()))
		tell(s.damaged, prometheus.CounterValue, float64(file.Damaged()))
	}
	remote := s.from.Remote
	tell(s.away, prometheus.GaugeValue, flag(remote != nil && remote.Unavailable() != nil))
	stats := s.from.Artifacts()
	tell(s.artifactsAway, prometheus.GaugeValue, flag(stats.Away))
	tell(s.artifacts, prometheus.GaugeValue, float64(stats.UsedBytes))
	tell(s.files, prometheus.GaugeValue, float64(stats.Files))
	tell(s.uploads, prometheus.GaugeValue, float64(stats.Uploads))
	tell(s.unfinished, prometheus.GaugeValue, float64(stats.UnfinishedBytes))
	tell(s.checked, prometheus.CounterValue, float64(stats.CheckedBytes))
	tell(s.unchecked, prometheus.GaugeValue, max(time.Since(stats.OldestCheck), 0).Seconds())
	for why, n := range stats.Dropped {
		tell(s.dropped, prometheus.CounterValue, float64(n), why)
	}
	for why, n := range stats.Refused {
		tell(s.refused, prometheus.CounterValue, float64(n), why)
	}
	free, err := s.from.FreeBytes()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(s.free, err)
		return
	}
	tell(s.free, prometheus.GaugeValue, float64(free))
}
