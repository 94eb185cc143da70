package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/tilth-dev/tilth/internal/stat"
)

// appendResult adds a line to the file of results.
func appendResult(path string, r *result) (err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(append(text, '\n'))
	return err
}

// readResults are the results kept; of a task the last.
func readResults(path string) ([]result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []result
	at := map[string]int{}
	for d := json.NewDecoder(f); ; {
		var r result
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if k, known := at[r.Task]; known {
			list[k] = r
			continue
		}
		at[r.Task] = len(list)
		list = append(list, r)
	}
}

// pair is two candidates that took turns.
type pair struct {
	// difference is by how much the slower is slower in the long measurement, relative.
	difference float64
	// search and race say whether these measurements name the same winner as the long one.
	search, race bool
	// clear says whether the intervals of the long measurement are apart.
	clear bool
}

func (r *result) pairs() (list []pair) {
	for i, a := range r.Candidates {
		for _, b := range r.Candidates[i+1:] {
			if a.Group == b.Group && len(a.Long) > 0 && len(b.Long) > 0 {
				list = append(list, compare(a, b))
			}
		}
	}
	return list
}

func compare(a, b candidate) pair {
	if median(b.Long) < median(a.Long) {
		a, b = b, a
	}
	return pair{
		difference: median(b.Long)/median(a.Long) - 1,
		search:     median(a.Search) <= median(b.Search),
		race:       median(a.Race) <= median(b.Race),
		clear:      stat.MedianInterval(a.Long).High < stat.MedianInterval(b.Long).Low,
	}
}

func median(samples []float64) float64 { return stat.Of(samples).Median }

// regret is by how much the choice of a measurement among a task's candidates is slower in the long measurement than
// the best.
func (r *result) regret(by func(candidate) float64) float64 {
	chosen, best := math.Inf(1), math.Inf(1)
	value := math.Inf(1)
	for _, c := range r.Candidates {
		if len(c.Long) == 0 {
			continue
		}
		best = min(best, median(c.Long))
		if v := by(c); v < value {
			value, chosen = v, median(c.Long)
		}
	}
	return chosen/best - 1
}

func bySearch(c candidate) float64 { return median(c.Search) }

// byRace is the choice after finalists: those of the first group.
func byRace(c candidate) float64 {
	if c.Group > 0 || len(c.Race) == 0 {
		return math.Inf(1)
	}
	return median(c.Race)
}

// writeTable says how often the short measurements agree with the long one, and what each takes.
func writeTable(w io.Writer, results []result) {
	var pairs []pair
	var candidates int
	var search, race, long float64
	var searchRegrets, raceRegrets []float64
	for _, r := range results {
		pairs = append(pairs, r.pairs()...)
		candidates += len(r.Candidates)
		search, race, long = search+r.SearchSeconds, race+r.RaceSeconds, long+r.LongSeconds
		searchRegrets, raceRegrets = append(searchRegrets, r.regret(bySearch)), append(raceRegrets, r.regret(byRace))
	}
	fmt.Fprintf(w, "%d tasks, %d candidates, %d pairs that took turns\n\n", len(results), candidates, len(pairs))
	fmt.Fprintln(w, "| pairs | how many | same winner: search | finalists |")
	fmt.Fprintln(w, "|---|--:|--:|--:|")
	for _, least := range []float64{0, 0.01, 0.02, 0.05} {
		writeAgreement(w, fmt.Sprintf("more than %g %% apart", 100*least), pairs, func(p pair) bool { return p.difference >= least })
	}
	writeAgreement(w, "apart beyond the long measurement's own noise", pairs, func(p pair) bool { return p.clear })
	n := float64(max(candidates, 1))
	fmt.Fprintf(w, "\nseconds a candidate: search %.4f, finalists %.4f, long %.4f\n", search/n, race/n, long/n)
	fmt.Fprintf(w, "the chosen one is slower than the best: search %s, finalists %s\n", regrets(searchRegrets), regrets(raceRegrets))
}

func writeAgreement(w io.Writer, name string, pairs []pair, take func(pair) bool) {
	var n, search, race int
	for _, p := range pairs {
		if !take(p) {
			continue
		}
		n++
		if p.search {
			search++
		}
		if p.race {
			race++
		}
	}
	share := func(k int) float64 { return 100 * float64(k) / float64(max(n, 1)) }
	fmt.Fprintf(w, "| %s | %d | %.1f %% | %.1f %% |\n", name, n, share(search), share(race))
}

func regrets(list []float64) string {
	s := stat.Of(list)
	return fmt.Sprintf("%.2f %% in the mean, %.2f %% at most", 100*s.Mean, 100*s.Max)
}
