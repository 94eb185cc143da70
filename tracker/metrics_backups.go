package tracker

import "github.com/prometheus/client_golang/prometheus"

// backupMetrics say how old the last good backup is, and how large.
type backupMetrics struct {
	interval, made, size, kept prometheus.Gauge
	failures                   prometheus.Counter
}

func newBackupMetrics(policy Backups) *backupMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "tilth_tracker_backup_" + name, Help: help})
	}
	m := &backupMetrics{
		interval: gauge("interval_seconds", "Time from one backup of the records file to the next; 0 = none are made."),
		made:     gauge("last_success_timestamp_seconds", "When the last good backup began; 0 = there is none."),
		size:     gauge("size_bytes", "Size of the last good backup."),
		kept:     gauge("files", "Good backups in the folder."),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tilth_tracker_backup_failures_total", Help: "Backups that were not made, or were damaged.",
		}),
	}
	if policy.Dir != "" {
		m.interval.Set(policy.Every.Seconds())
	}
	return m
}

func (m *backupMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.interval, m.made, m.size, m.kept, m.failures}
}

// tell sets the gauges by the backups in the folder, the newest first, of which there is one at least.
func (m *backupMetrics) tell(all []backup) {
	m.made.Set(float64(all[0].at.Unix()))
	m.size.Set(float64(all[0].size))
	m.kept.Set(float64(len(all)))
}
