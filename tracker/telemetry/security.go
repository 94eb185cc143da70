package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// securityMetrics report the memory of requests and responses, and the expiry of credentials.
func securityMetrics(from Sources) []prometheus.Collector {
	held := func(name, help string, bytes func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(bytes()) })
	}
	all := []prometheus.Collector{
		held("tilth_tracker_request_bytes", "Size of requests in progress, as encoded on the wire.", from.RequestBytes),
		held("tilth_tracker_answer_bytes", "Size of responses that are being made or have not been read.", from.AnswerBytes),
	}
	at := func(name, help string, time func() time.Time) {
		if time == nil {
			return
		}
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if t := time(); !t.IsZero() {
				return float64(t.Unix())
			}
			return 0
		}))
	}
	at("tilth_tracker_certificate_expiry_timestamp_seconds", "Expiry of the tracker's certificate, as Unix time.", from.CertificateExpiry)
	at("tilth_tracker_issuer_keys_timestamp_seconds", "Last fetch of the token issuer's keys, as Unix time; 0 = never.", from.IssuerKeysRead)
	return all
}
