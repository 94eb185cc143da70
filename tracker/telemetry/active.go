package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Shards registers a metric with the number of shards.
func Shards(reg prometheus.Registerer, count int) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_tracker_shards", Help: "How many shards the store has, of which the tracker is one's.",
	})
	g.Set(float64(max(count, 1)))
	return reg.Register(g)
}

// Active registers a metric that reports whether the tracker is active or on standby.
func Active(reg prometheus.Registerer, serves bool) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tilth_tracker_active", Help: "1 while the tracker serves, 0 while it stands by since another one has the database.",
	})
	if serves {
		g.Set(1)
	}
	return reg.Register(g)
}
