package gbdt

import (
	"bufio"
	"bytes"
	"fmt"
	"runtime"

	"github.com/dmitryikh/leaves"
)

// Predictor evaluates a model. It is safe for concurrent use.
type Predictor struct {
	ensemble *leaves.Ensemble // nil for a model without trees
	features int
}

// NewPredictor prepares a model for prediction.
func NewPredictor(m *Model) (*Predictor, error) {
	p := &Predictor{features: len(m.Features)}
	if len(m.Trees) == 0 {
		return p, nil
	}
	for i := range m.Trees { // the library does not validate its input
		if err := m.Trees[i].check(len(m.Features)); err != nil {
			return nil, fmt.Errorf("gbdt: tree %d: %w", i, err)
		}
	}
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		return nil, err
	}
	var err error
	if p.ensemble, err = leaves.LGEnsembleFromReader(bufio.NewReader(&text), false); err != nil {
		return nil, fmt.Errorf("gbdt: the model for prediction: %w", err)
	}
	return p, nil
}

// Predict returns the prediction for each row of the row-major matrix rows.
func (p *Predictor) Predict(rows []float32) ([]float64, error) {
	n := len(rows) / p.features
	if len(rows) != n*p.features {
		return nil, fmt.Errorf("gbdt: %d values are not rows of %d features", len(rows), p.features)
	}
	predictions := make([]float64, n)
	if p.ensemble == nil || n == 0 {
		return predictions, nil
	}
	values := make([]float64, len(rows))
	for i, v := range rows {
		values[i] = float64(v)
	}
	if err := p.ensemble.PredictDense(values, n, p.features, predictions, 0, runtime.GOMAXPROCS(0)); err != nil {
		return nil, fmt.Errorf("gbdt: predict: %w", err)
	}
	return predictions, nil
}
