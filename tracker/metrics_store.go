package tracker

import "github.com/prometheus/client_golang/prometheus"

// storeCollector measures what the tracker has on disk.
type storeCollector struct {
	tracker                         *Tracker
	size, reusable, artifacts, free *prometheus.Desc
}

func newStoreCollector(t *Tracker) *storeCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("tilth_tracker_"+name, help, nil, nil)
	}
	return &storeCollector{
		tracker:   t,
		size:      desc("store_size_bytes", "Size of the records file."),
		reusable:  desc("store_reusable_bytes", "Part of the records file that is used again before it grows."),
		artifacts: desc("artifacts_size_bytes", "Size of the artifacts, unfinished uploads included."),
		free:      desc("disk_free_bytes", "Room on the disk of the records file or of the artifacts, the lesser of the two."),
	}
}

// Describe implements prometheus.Collector.
func (s *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.size, s.reusable, s.artifacts, s.free} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *storeCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, bytes int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(bytes))
	}
	gauge(s.size, s.tracker.db.SizeBytes())
	gauge(s.reusable, s.tracker.db.FreeBytes())
	gauge(s.artifacts, s.tracker.artifacts.UsedBytes())
	free, err := s.tracker.freeBytes()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(s.free, err)
		return
	}
	gauge(s.free, free)
}
