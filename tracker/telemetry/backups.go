package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backupMetrics report the age and size of the last good backup.
type backupMetrics struct {
	interval, made, size, kept prometheus.Gauge
	failures                   prometheus.Counter
}

func newBackupMetrics(every time.Duration) *backupMetrics {
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
	m.interval.Set(every.Seconds())
	return m
}

func (m *backupMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.interval, m.made, m.size, m.kept, m.failures}
}

// Backups implements upkeep.Observer.
func (m *Metrics) Backups(newest time.Time, sizeBytes int64, count int) {
	m.backups.made.Set(float64(newest.Unix()))
	m.backups.size.Set(float64(sizeBytes))
	m.backups.kept.Set(float64(count))
}

// NoBackup implements upkeep.Observer.
func (m *Metrics) NoBackup() { m.backups.failures.Inc() }

// RowsChecked implements upkeep.Observer.
func (m *Metrics) RowsChecked(rows int) { m.rowsChecked.Add(float64(rows)) }

// Checked implements upkeep.Observer.
func (m *Metrics) Checked(at time.Time) { m.storeChecked.Set(float64(at.Unix())) }
