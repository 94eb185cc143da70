package warmstart

import (
	"encoding/json"
	"math"
)

// list is a JSON array whose elements are decoded one by one.
type list []json.RawMessage

// read decodes element k, and returns false on failure.
func (l list) read(k int, into any) bool { return k < len(l) && json.Unmarshal(l[k], into) == nil }

// kindOf returns the kind of a target described in JSON.
func kindOf(text string) string {
	var t struct{ Kind string }
	if json.Unmarshal([]byte(text), &t) != nil {
		return "?"
	}
	return t.Kind
}

// Both formats store a measurement as latencies, an error code (0 for none), and two more numbers.
func seconds(result list) (float64, error) {
	var costs []float64
	var code int
	if !result.read(0, &costs) || !result.read(1, &code) || len(costs) == 0 {
		return 0, refuse(Malformed, "its result has no latencies or no code of errors")
	}
	if code != 0 {
		return 0, refuse(Failed, "code %d", code)
	}
	sum := 0.0
	for _, c := range costs {
		sum += c
	}
	mean := sum / float64(len(costs))
	if !(mean > 0) || mean >= unmeasured || math.IsInf(mean, 0) {
		return 0, refuse(Failed, "a latency of %g s", mean)
	}
	return mean, nil
}

// unmeasured is the latency that TVM writes for a failed measurement.
const unmeasured = 1e8
