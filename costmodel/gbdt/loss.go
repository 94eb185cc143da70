package gbdt

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// A Loss says how bad predictions are, by its derivatives with respect to each of them.
type Loss interface {
	// Name is the loss's name in LightGBM's model text.
	Name() string
	// Start is the prediction that an empty model makes for every row.
	Start(d *Data) float64
	// Derivatives sets the first and second derivatives of the loss at the predictions. Random numbers come from rng.
	Derivatives(d *Data, predictions, first, second []float64, rng *rand.Rand)
}

// Squared is half the squared error.
type Squared struct{}

// Name is LightGBM's objective.
func (Squared) Name() string { return "regression" }

// Start is the weighted mean of what the labels exceed the offsets by.
func (Squared) Start(d *Data) float64 {
	sum, weights := 0.0, 0.0
	for i, y := range d.Labels {
		sum += d.weight(i) * (float64(y) - d.offset(i))
		weights += d.weight(i)
	}
	return sum / weights
}

// Derivatives are the error and 1, times the row's weight.
func (Squared) Derivatives(d *Data, predictions, first, second []float64, _ *rand.Rand) {
	for i, y := range d.Labels {
		w := d.weight(i)
		first[i], second[i] = w*(predictions[i]-float64(y)), w
	}
}

// Rank is the logistic loss of pairs of one group: log(1 + exp(better - worse)) of their predictions, weighted by how
// far their labels are apart and by the rows' weights. Only the order of predictions within a group has a meaning.
type Rank struct {
	// Pairs is how many rows each row is compared with in a round, drawn anew each time; 0 means 8.
	Pairs int
	// Apart is how far apart two labels must be at least for their order to count: closer ones may be apart by chance.
	Apart float64
	// Steepness, LightGBM's sigmoid, scales predictions: those of pairs that differ by more than a few times its
	// inverse are as good as in order. 0 means 1.
	Steepness float64
}

// Name is that of a regression: the predictions are taken as they are.
func (Rank) Name() string { return "regression" }

// Start is 0.
func (Rank) Start(*Data) float64 { return 0 }

// Derivatives compares each row with others of its group, drawn at random.
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
	wrong := 1 / (1 + math.Exp(steepness*(predictions[i]-predictions[j]))) // the probability of the other order
	first[i] -= steepness * weight * wrong
	first[j] += steepness * weight * wrong
	curvature := steepness * steepness * weight * wrong * (1 - wrong)
	second[i] += curvature
	second[j] += curvature
}
