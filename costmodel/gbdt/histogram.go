package gbdt

// sums are those of the derivatives of some rows.
type sums struct{ first, second float64 }

func (s sums) minus(o sums) sums { return sums{s.first - o.first, s.second - o.second} }

// score is by how much the best value for these rows lowers the loss, times two.
func (s sums) score(l2 float64) float64 { return s.first * s.first / (s.second + l2) }

// histogram has the sums of a leaf's rows for each bin of a feature. A byte needs no check of bounds.
type histogram [maxBins + 1]sums

// count fills the histogram of rows over a number of bins; derivatives are in the order of rows.
func (h *histogram) count(column []uint8, bins int, rows []int32, derivatives []sums) {
	clear(h[:bins])
	derivatives = derivatives[:len(rows)]
	for i, r := range rows {
		s, d := &h[column[r]], &derivatives[i]
		s.first += d.first
		s.second += d.second
	}
}

// subtract takes a child's sums from its parent's, which become the other child's.
func (h *histogram) subtract(child *histogram, bins int) {
	for b := range h[:bins] {
		s, of := &h[b], &child[b]
		s.first -= of.first
		s.second -= of.second
	}
}

// split is a decision: rows with at most bin go left.
type split struct {
	feature, bin int
	gain         float64
	left         sums
}

// best finds the split of the largest gain on one feature; its gain is 0 where there is none.
func (h *histogram) best(feature, bins int, total sums, p *Params) split {
	best := split{feature: feature}
	l2, least := p.L2, p.MinWeight
	whole := total.score(l2)
	most := whole
	var left sums
	for b := range h[:bins-1] {
		s := &h[b]
		left.first += s.first
		left.second += s.second
		right := total.minus(left)
		if left.second < least {
			continue
		}
		if right.second < least {
			break
		}
		// The children's scores are compared without their two divisions, which would take most of the time.
		l, r := left.second+l2, right.second+l2
		if score := left.first*left.first*r + right.first*right.first*l; score > most*(l*r) {
			most = score / (l * r)
			best.bin, best.left = b, left
		}
	}
	best.gain = most - whole
	return best
}
