package searchspace

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Knob is an open number.
type Knob struct {
	Name string
	// Values lists the choices in ascending order.
	Values []int64
	// Unrolls is set if the number is an unroll factor.
	Unrolls bool
	// Widens lists the choices that store constants or all of an input in a wider type, not all of them.
	Widens []int64
}

// Point is a choice for every knob: Point[k] is an index into Knobs[k].Values.
type Point []int

// Space is the set of candidate schedules of one workload on one target, in one or more families that points select
// by their algorithm.
type Space struct {
	Workload *expr.Workload
	Target   *target.Target
	Knobs    []Knob
	families []member
	// base is the space that With extended, or nil.
	base *Space
}

// New returns the space of families. An algorithm may belong to one family only.
func New(w *expr.Workload, t *target.Target, families ...Family) *Space {
	s := &Space{Workload: w, Target: t}
	var numbers []int64
	for _, f := range families {
		for _, a := range f.Algorithms() {
			numbers = append(numbers, a.Number)
		}
	}
	if len(numbers) > 1 {
		s.Knobs = append(s.Knobs, Knob{Name: algorithmKnob, Values: numbers})
	}
	for _, f := range families {
		first := len(s.Knobs)
		s.Knobs = append(s.Knobs, f.Knobs()...)
		s.families = append(s.families, member{f, f.Algorithms(), first, len(s.Knobs)})
	}
	return s
}

// Size returns the number of points, legal or not.
func (s *Space) Size() float64 {
	size := 1.0
	for _, k := range s.Knobs {
		size *= float64(len(k.Values))
	}
	return size
}

// Legal returns an error if a point violates a constraint that is known before compilation.
func (s *Space) Legal(p Point) error {
	if err := s.inBounds(p); err != nil {
		return err
	}
	if err := s.checkCanonical(p); err != nil {
		return err
	}
	by, f := s.chosen(p)
	return f.Legal(by, s.values(p, f))
}

func (s *Space) inBounds(p Point) error {
	if len(p) != len(s.Knobs) {
		return fmt.Errorf("space: point has %d values for %d knobs", len(p), len(s.Knobs))
	}
	for k, v := range p {
		if v < 0 || v >= len(s.Knobs[k].Values) {
			return fmt.Errorf("space: knob %s has no choice %d", s.Knobs[k].Name, v)
		}
	}
	return nil
}

// Apply returns the schedule of a point.
func (s *Space) Apply(p Point) (*schedule.Schedule, error) {
	if err := s.Legal(p); err != nil {
		return nil, err
	}
	sch := schedule.New(s.Workload)
	by, f := s.chosen(p)
	if err := f.Apply(sch, by, s.values(p, f)); err != nil {
		return nil, fmt.Errorf("space: %w", err)
	}
	return sch, nil
}

// Cost returns a rough analytic estimate of a point's run time in cycles of one core, good enough to discard bad
// points and to choose a default. It is infinite for points that are not legal.
func (s *Space) Cost(p Point) float64 {
	if s.Legal(p) != nil {
		return math.Inf(1)
	}
	by, f := s.chosen(p)
	return f.Cost(by, s.values(p, f))
}

// Neighbours returns the legal points that differ from p in exactly one active knob.
func (s *Space) Neighbours(p Point) []Point {
	var list []Point
	for k, knob := range s.Knobs {
		for v := range knob.Values {
			if v == p[k] {
				continue
			}
			q := append(Point{}, p...)
			q[k] = v
			if s.Legal(s.canonical(q)) == nil && q[k] == v {
				list = append(list, q)
			}
		}
	}
	return list
}

// Random draws a legal point; ok is false if none was found within a reasonable number of draws.
func (s *Space) Random(rng *rand.Rand) (p Point, ok bool) {
	for range 200 {
		p = s.draw(rng)
		if s.Legal(p) == nil {
			return p, true
		}
	}
	return nil, false
}

// Draws returns up to n points of Random.
func (s *Space) Draws(rng *rand.Rand, n int) (points []Point) {
	for range n {
		if p, ok := s.Random(rng); ok {
			points = append(points, p)
		}
	}
	return points
}

// Mutate changes a few knobs of a point, mostly to a neighbouring value, occasionally the algorithm; ok is false if
// no legal change was found.
func (s *Space) Mutate(rng *rand.Rand, p Point) (q Point, ok bool) {
	for range 50 {
		q = append(Point{}, p...)
		for n := 1 + rng.IntN(3); n > 0; n-- {
			k := rng.IntN(max(1, len(s.Knobs)))
			if k >= len(s.Knobs) {
				return nil, false
			}
			if !s.Active(q, k) {
				continue
			}
			choices := len(s.Knobs[k].Values)
			if k == 0 && s.chooses() {
				q = s.switched(rng, q)
				continue
			}
			if rng.IntN(2) == 0 {
				q[k] = rng.IntN(choices)
			} else {
				q[k] = min(max(q[k]+2*rng.IntN(2)-1, 0), choices-1)
			}
		}
		if s.reconciled(q).Key() != p.Key() && s.Legal(q) == nil {
			return q, true
		}
	}
	return nil, false
}

// Crossover takes each knob from one of two points; ok is false if no legal mixture was found. Points of different
// families have none.
func (s *Space) Crossover(rng *rand.Rand, a, b Point) (q Point, ok bool) {
	if s.familyOf(a) != s.familyOf(b) {
		return nil, false
	}
	for range 20 {
		q = append(Point{}, a...)
		for k := range q {
			if rng.IntN(2) == 0 {
				q[k] = b[k]
			}
		}
		if s.Legal(q) == nil {
			return q, true
		}
	}
	return nil, false
}

// Key identifies a point within its space.
func (p Point) Key() string {
	var b strings.Builder
	for _, v := range p {
		b.WriteString(strconv.Itoa(v) + " ")
	}
	return b.String()
}

// Format returns a point as text, knob=value separated by spaces, without inactive knobs. Parse can read it in the
// space of another shape.
func (s *Space) Format(p Point) string {
	var parts []string
	for k, v := range p {
		if s.Active(p, k) {
			parts = append(parts, fmt.Sprintf("%s=%d", s.Knobs[k].Name, s.Knobs[k].Values[v]))
		}
	}
	return strings.Join(parts, " ")
}

// Parse parses a formatted point. It uses the nearest choice for values that a knob lacks, and the first for
// missing knobs; ok is false if the result is not legal.
func (s *Space) Parse(text string) (p Point, ok bool) {
	wanted := map[string]int64{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			wanted[name] = n
		}
	}
	if n := wanted[algorithmKnob]; n >= MinOwn && !(s.chooses() && slices.Contains(s.Knobs[0].Values, n)) {
		return nil, false // user-written algorithms have no nearest choice
	}
	p = make(Point, len(s.Knobs))
	for k, knob := range s.Knobs {
		if v, named := wanted[knob.Name]; named {
			p[k] = nearest(knob.Values, v)
		}
	}
	p = s.reconciled(s.canonical(p))
	return p, s.Legal(p) == nil
}

// nearest returns the index of the value nearest to want.
func nearest(values []int64, want int64) int {
	best := 0
	for k, v := range values {
		if abs(v-want) < abs(values[best]-want) {
			best = k
		}
	}
	return best
}

func abs(v int64) int64 { return max(v, -v) }

// values returns the knob values of a point's family.
func (s *Space) values(p Point, f *member) []int64 {
	values := make([]int64, 0, f.end-f.first)
	for k := f.first; k < f.end; k++ {
		values = append(values, s.Knobs[k].Values[p[k]])
	}
	return values
}

// reconciled makes the choices of p consistent, as defined by its family, in place.
func (s *Space) reconciled(p Point) Point {
	by, f := s.chosen(p)
	values := s.values(p, f)
	f.Reconcile(by, values)
	for k, v := range values {
		p[f.first+k] = nearest(s.Knobs[f.first+k].Values, v)
	}
	return p
}

// sorted orders points by analytic cost, lowest first, in a stable way.
func (s *Space) sorted(points []Point) []Point {
	type priced struct {
		p    Point
		cost float64
	}
	list := make([]priced, len(points))
	for k, p := range points {
		list[k] = priced{p, s.Cost(p)}
	}
	slices.SortStableFunc(list, func(a, b priced) int { return cmp.Compare(a.cost, b.cost) })
	for k := range list {
		points[k] = list[k].p
	}
	return points
}

// Sort orders points by analytic cost, lowest first.
func (s *Space) Sort(points []Point) { s.sorted(points) }

// Restrict returns the part of the space in which the named knobs have only the given values. Points of the part have
// other indices than those of the whole, and the same text. The error names a knob or a value that the space lacks.
func (s *Space) Restrict(values map[string][]int64) (*Space, error) {
	part := *s
	part.base = nil
	part.Knobs = slices.Clone(s.Knobs)
	known := 0
	for k, knob := range s.Knobs {
		wanted, named := values[knob.Name]
		if !named {
			continue
		}
		known++
		if len(wanted) == 0 {
			return nil, fmt.Errorf("space: knob %s is left without a value: name at least one of %v", knob.Name, knob.Values)
		}
		for _, v := range wanted {
			if !slices.Contains(knob.Values, v) {
				return nil, fmt.Errorf("space: knob %s has no value %d: choose among %v", knob.Name, v, knob.Values)
			}
		}
		part.Knobs[k].Values = slices.DeleteFunc(slices.Clone(knob.Values), func(v int64) bool { return !slices.Contains(wanted, v) })
	}
	if known < len(values) {
		return nil, fmt.Errorf("space: %s", s.unknown(values))
	}
	return &part, nil
}

// KeepsTypes returns the part of the space that stores constants and inputs in their own types, transforms aside.
func (s *Space) KeepsTypes() *Space {
	part := *s
	part.base, part.Knobs = nil, slices.Clone(s.Knobs)
	for k, knob := range s.Knobs {
		part.Knobs[k].Values = slices.DeleteFunc(slices.Clone(knob.Values), func(v int64) bool { return slices.Contains(knob.Widens, v) })
	}
	return &part
}

// unknown returns the alphabetically first knob that the space lacks.
func (s *Space) unknown(values map[string][]int64) string {
	var names []string
	for name := range values {
		if !slices.ContainsFunc(s.Knobs, func(k Knob) bool { return k.Name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("there is no knob %s for this workload", names[0])
}
