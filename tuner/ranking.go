package tuner

// ranking compares the order in which the model had put a batch's candidates with that of their latencies. Of batches
// that another tuner proposed, the predictions are not known, and nothing is said.
type ranking struct {
	tell func(right, wrong int)
	// batch numbers the picks, and predictions are those of candidates not measured yet.
	batch       int
	predictions map[string]prediction
	// known are the measured ones of the latest batches, by number.
	known map[int][]ranked
}

// prediction is a time on the model's scale, of a candidate of a batch.
type prediction struct {
	batch int
	time  float64
}

// ranked is a candidate both predicted and measured.
type ranked struct{ predicted, seconds float64 }

// distinct is by how much latencies must differ for their order to mean something.
const distinct = 1.05

// rememberedBatches bounds for how long a batch is waited for: a tuner has few in flight.
const rememberedBatches = 16

func newRanking(tell func(right, wrong int)) ranking {
	return ranking{tell: tell, predictions: map[string]prediction{}, known: map[int][]ranked{}}
}

// begin begins a batch, and forgets an old one.
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

// predict notes the time that a candidate of the batch was picked for.
func (r *ranking) predict(digest string, time float64) {
	if r.tell != nil {
		r.predictions[digest] = prediction{r.batch, time}
	}
}

// measured compares a candidate with those of its batch that were measured before it.
func (r *ranking) measured(t Trial) {
	p, ok := r.predictions[t.Digest]
	if !ok {
		return
	}
	delete(r.predictions, t.Digest)
	right, wrong := 0, 0
	for _, other := range r.known[p.batch] {
		if max(t.LatencySeconds, other.seconds) <= distinct*min(t.LatencySeconds, other.seconds) {
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
