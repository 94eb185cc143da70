package gbdt

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// Loss is a loss function, given by its derivatives with respect to each prediction.
type Loss interface {
	// Name returns the name of the loss in LightGBM text.
	Name() string
	// Start returns the constant prediction of an empty model.
	Start(d *Data) float64
	// Derivatives sets the first and second derivatives of the loss at the predictions. Random numbers come from rng.
	Derivatives(d *Data, predictions, first, second []float64, rng *rand.Rand)
}

// Squared is half the squared error.
type Squared struct{}

// Name implements Loss.
func (Squared) Name() string { return "regression" }

// Start returns the weighted mean of the labels minus the offsets.
func (Squared) Start(d *Data) float64 {
	sum, weights := 0.0, 0.0
	for i, y := range d.Labels {
		sum += d.weight(i) * (float64(y) - d.offset(i))
		weights += d.weight(i)
	}
	return sum / weights
}

// Derivatives implements Loss.
func (Squared) Derivatives(d *Data, predictions, first, second []float64, _ *rand.Rand) {
	for i, y := range d.Labels {
		w := d.weight(i)
		first[i], second[i] = w*(predictions[i]-float64(y)), w
	}
}

// Rank is the logistic loss of pairs of rows in a group: log(1 + exp(better - worse)) of their predictions, weighted
// by the distance of their labels and by the rows' weights. Only the order of predictions within a group matters.
type Rank struct {
	// Pairs is the number of rows that each row is compared with in a round, drawn anew each time; 0 means 8.
	Pairs int
	// Apart is the minimum distance of two labels for their order to count. Smaller distances may be noise.
	Apart float64
	// Steepness (LightGBM's sigmoid) scales predictions. Pairs whose predictions differ by several times its
	// inverse count as correctly ordered. 0 means 1.
	Steepness float64
}

// Name returns the name of a regression, because predictions are not transformed.
func (Rank) Name() string { return "regression" }

// Start implements Loss.
func (Rank) Start(*Data) float64 { return 0 }

// Derivatives compares each row with random others of its group.
func (l Rank) Derivatives(d *Data, predictions, first, second []float64, rng *rand.Rand) {
	clear(first)
	clear(second)
	pairs := l.Pairs
	if pairs <= 0 {
		pairs = 8
	}
	groups := d.Groups
	if groups == nil {
		groups = []int{d.NumRows()}
	}
	begin := 0
	for _, n := range groups {
		for i := begin; n > 1 && i < begin+n; i++ {
			for range pairs {
				if j := begin + rng.IntN(n); j != i {
					l.pull(d, predictions, first, second, i, j)
				}
			}
		}
		begin += n
	}
}

// pull adds the derivatives of one pair.
func (l Rank) pull(d *Data, predictions, first, second []float64, i, j int) {
	if d.Labels[i] < d.Labels[j] {
		i, j = j, i
	}
	apart := float64(d.Labels[i]) - float64(d.Labels[j])
	if apart == 0 || apart < l.Apart {
		return
	}
	weight := apart * math.Sqrt(d.weight(i)*d.weight(j))
	steepness := cmp.Or(l.Steepness, 1)
	wrong := 1 / (1 + math.Exp(steepness*(predictions[i]-predictions[j]))) // probability of the wrong order
	first[i] -= steepness * weight * wrong
	first[j] += steepness * weight * wrong
	curvature := steepness * steepness * weight * wrong * (1 - wrong)
	second[i] += curvature
	second[j] += curvature
}
