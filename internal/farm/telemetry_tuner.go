package farm

import "github.com/prometheus/client_golang/prometheus"

// TunerMetrics holds the metrics of tuners and implements tuner.Observer.
type TunerMetrics struct {
	proposed prometheus.Counter
	seconds  prometheus.Histogram
	pairs    *prometheus.CounterVec
}

// Label values that tell whether two candidates were measured in the predicted order.
const (
	orderRight = "right"
	orderWrong = "wrong"
)

// NewTunerMetrics registers the metrics of a tuner.
func NewTunerMetrics(reg prometheus.Registerer) (*TunerMetrics, error) {
	t := &TunerMetrics{
		proposed: prometheus.NewCounter(prometheus.CounterOpts{Name: "tilth_tuner_candidates_total", Help: "Candidates that searches proposed."}),
		seconds:  histogram("tilth_tuner_search_seconds", "Time of a search for one batch.", 0.001, 16),
		pairs: counter("tilth_tuner_ranked_pairs_total",
			"Pairs of a batch's candidates whose latencies differ by more than 5 %, by whether the cost model had ranked them right.", "order"),
	}
	t.pairs.WithLabelValues(orderRight)
	t.pairs.WithLabelValues(orderWrong)
	return t, register(reg, t.proposed, t.seconds, t.pairs)
}

// Searched implements tuner.Observer.
func (t *TunerMetrics) Searched(candidates int, seconds float64) {
	t.proposed.Add(float64(candidates))
	t.seconds.Observe(seconds)
}

// Ranked implements tuner.Observer.
func (t *TunerMetrics) Ranked(right, wrong int) {
	t.pairs.WithLabelValues(orderRight).Add(float64(right))
	t.pairs.WithLabelValues(orderWrong).Add(float64(wrong))
}
