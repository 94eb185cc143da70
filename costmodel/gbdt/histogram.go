package gbdt

// sums holds the sums of the derivatives of some rows.
type sums struct{ first, second float64 }

func (s sums) minus(o sums) sums { return sums{s.first - o.first, s.second - o.second} }

// score returns twice the decrease of the loss that the best value for these rows achieves.
func (s sums) score(l2 float64) float64 { return s.first * s.first / (s.second + l2) }

// histogram holds the sums of a leaf's rows by bin of a feature. A byte indexes it without a bounds check.
type histogram [maxBins + 1]sums

// count fills the histogram from rows. derivatives are in the order of rows.
func (h *histogram) count(column []uint8, bins int, rows []int32, derivatives []sums) {
	clear(h[:bins])
	derivatives = derivatives[:len(rows)]
	for i, r := range rows {
		s, d := &h[column[r]], &derivatives[i]
		s.first += d.first
		s.second += d.second
	}
}

// subtract turns a parent's histogram into that of one child by subtracting the other child's.
func (h *histogram) subtract(child *histogram, bins int) {
	for b := range h[:bins] {
		s, of := &h[b], &child[b]
		s.first -= of.first
		s.second -= of.second
	}
}

// split is a decision: rows up to a bin go left.
type split struct {
	feature, bin int
	gain         float64
	left         sums
}

// best returns the split of a feature with the largest gain, or a gain of 0.
func (h *histogram) best(feature, bins int, total sums, p *Params) split {
	best := split{feature: feature}
	l2, minWeight := p.L2, p.MinWeight
	whole := total.score(l2)
	most := whole
	var left sums
	for b := range h[:bins-1] {
		s := &h[b]
		left.first += s.first
		left.second += s.second
		right := total.minus(left)
		if left.second < minWeight {
			continue
		}
		if right.second < minWeight {
			break
		}
		// The comparison of the children's scores avoids their two divisions, which would dominate.
		l, r := left.second+l2, right.second+l2
		if score := left.first*left.first*r + right.first*right.first*l; score > most*(l*r) {
			most = score / (l * r)
			best.bin, best.left = b, left
		}
	}
	best.gain = most - whole
	return best
}
