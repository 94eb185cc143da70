package operators

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/lab/bench"
)

// versus formats the comparison of a row with libraries.
func (r row) versus() (text string) {
	for _, a := range r.Against {
		text += fmt.Sprintf("; %s %s", a.Library, a.cell())
	}
	return text
}

// cell formats a library's column: its time and ratio.
func (a against) cell() string {
	return fmt.Sprintf("%s, **%.2f** (%.2f–%.2f)", humanize.Seconds(a.Seconds), a.Ratio, a.Low, a.High)
}

// librariesOf returns the names of the libraries in rows.
func librariesOf(list []row) (names []string) {
	for _, r := range list {
		for _, a := range r.Against {
			if !slices.Contains(names, a.Library) {
				names = append(names, a.Library)
			}
		}
	}
	return names
}

// with returns a library's time for a row's workload. ok is false if it was not compared.
func (r row) with(library string) (a against, ok bool) {
	k := slices.IndexFunc(r.Against, func(a against) bool { return a.Library == library })
	if k < 0 {
		return a, false
	}
	return r.Against[k], true
}

// writeVersus summarises the comparison of each operator with each library.
func writeVersus(out *strings.Builder, list []row) {
	table := bench.NewTable("operator | library | >shapes | >geometric mean | >least | of")
	libraries := librariesOf(list)
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Operator == list[0].Operator {
			n++
		}
		for _, library := range libraries {
			addMean(table, library, list[:n])
		}
		list = list[n:]
	}
	table.Write(out, "")
}

// addMean adds the row of an operator and a library, if the library supports any of the rows.
func addMean(table *bench.Table, library string, list []row) {
	var ratios []float64
	least, of := math.Inf(1), ""
	for _, r := range list {
		a, ok := r.with(library)
		if !ok {
			continue
		}
		ratios = append(ratios, a.Ratio)
		if a.Ratio < least {
			least, of = a.Ratio, r.Shape
		}
	}
	if len(ratios) > 0 {
		table.Rowf("%s | %s | %d | %.2f | %.2f | %s", list[0].Operator, library, len(ratios), bench.GeometricMean(ratios), least, of)
	}
}
