package tuner

// ranking compares the predicted order of a batch's candidates with the order of their latencies. Batches
// that another tuner proposed are ignored because their predictions are unknown.
type ranking struct {
	tell func(right, wrong int)
	// batch numbers the picks. predictions holds the candidates not measured yet.
	batch       int
	predictions map[string]prediction
	// known holds the measured candidates of the latest batches, by batch number.
	known map[int][]ranked
}

// prediction is the predicted time of a candidate, on the model's scale, with its batch.
type prediction struct {
	batch int
	time  float64
}

// ranked is a candidate that was both predicted and measured.
type ranked struct{ predicted, seconds float64 }

// significantRatio is the ratio from which the order of two latencies is significant.
const significantRatio = 1.05

// rememberedBatches bounds the batches that may still be measured. A tuner has few in flight.
const rememberedBatches = 16

func newRanking(tell func(right, wrong int)) ranking {
	return ranking{tell: tell, predictions: map[string]prediction{}, known: map[int][]ranked{}}
}

// begin starts a batch and drops the oldest.
func (r *ranking) begin() {
	r.batch++
	old := r.batch - rememberedBatches
	delete(r.known, old)
	for digest, p := range r.predictions {
		if p.batch <= old {
			delete(r.predictions, digest)
		}
	}
}

// predict records the predicted time of a picked candidate.
func (r *ranking) predict(digest string, time float64) {
	if r.tell != nil {
		r.predictions[digest] = prediction{r.batch, time}
	}
}

// measured compares a candidate with those of its batch that were measured earlier.
func (r *ranking) measured(t Trial) {
	p, ok := r.predictions[t.Digest]
	if !ok {
		return
	}
	delete(r.predictions, t.Digest)
	right, wrong := 0, 0
	for _, other := range r.known[p.batch] {
		if max(t.LatencySeconds, other.seconds) <= significantRatio*min(t.LatencySeconds, other.seconds) {
			continue
		}
		if (p.time < other.predicted) == (t.LatencySeconds < other.seconds) {
			right++
		} else {
			wrong++
		}
	}
	r.known[p.batch] = append(r.known[p.batch], ranked{p.time, t.LatencySeconds})
	r.tell(right, wrong)
}
