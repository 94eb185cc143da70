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
		interval: gauge("interval_seconds", "Interval between backups of the records file; 0 = backups are disabled."),
		made:     gauge("last_success_timestamp_seconds", "Start of the last successful backup, as Unix time; 0 = none."),
		size:     gauge("size_bytes", "Size of the last successful backup."),
		kept:     gauge("files", "Verified backups in the folder."),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tilth_tracker_backup_failures_total", Help: "Failed or damaged backups.",
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
