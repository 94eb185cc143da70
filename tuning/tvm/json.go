package tvm

import (
	"encoding/json"
	"math"
)

// list is an array of JSON, whose elements are read one by one.
type list []json.RawMessage

// read reads element k; false where there is none such.
func (l list) read(k int, into any) bool { return k < len(l) && json.Unmarshal(l[k], into) == nil }

// kindOf is the kind of a target that is described in JSON.
func kindOf(text string) string {
	var t struct{ Kind string }
	if json.Unmarshal([]byte(text), &t) != nil {
		return "?"
	}
	return t.Kind
}

// Both formats tell a measurement as latencies, a code of errors, 0 for none, and two more numbers.
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

// unmeasured is the latency that TVM writes in place of one.
const unmeasured = 1e8
